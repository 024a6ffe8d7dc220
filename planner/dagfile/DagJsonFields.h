// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_DAGFILE_DAGJSONFIELDS_H
#define MGPU_PLANNER_DAGFILE_DAGJSONFIELDS_H

// The words of an mgpu-dag/2 file (DagJson.h), read one by one.

#include "planner/dag/Dag.h"
#include "support/LineText.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>

namespace mgpu::planner {

using Json = nlohmann::json;

// Keeps sums of sizes inside 64 bits.
inline constexpr uint64_t maxBytes = uint64_t(1) << 52;

/// One object of the file, with the words to name it in errors.
class Fields {
public:
  Fields(const Json &object, std::string where)
      : object(object), where(std::move(where)) {}

  tl::unexpected<Error> bad(std::string_view field,
                            std::string_view what) const {
    return fail(ErrorKind::Invalid,
                fmt::format("{}: field \"{}\" {}", where, field, what));
  }
  const Json *find(const char *field) const {
    auto it = object.find(field);
    return it == object.end() || it->is_null() ? nullptr : &*it;
  }
  Result<std::string> text(const char *field) const {
    const Json *value = find(field);
    if (!value || !value->is_string())
      return bad(field, value ? "must be a string" : "is missing");
    return value->get<std::string>();
  }
  Result<uint64_t> integer(const char *field, uint64_t limit,
                           std::optional<uint64_t> absent = {}) const {
    const Json *value = find(field);
    if (!value && absent)
      return *absent;
    if (!value)
      return bad(field, "is missing");
    return asInteger(field, *value, limit);
  }
  Result<uint64_t> asInteger(const char *field, const Json &value,
                             uint64_t limit) const {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > limit)
      return bad(field, fmt::format("must be an integer from 0 to {}", limit));
    return value.get<uint64_t>();
  }
  Result<double> number(const char *field) const {
    const Json *value = find(field);
    if (!value)
      return 0.0;
    if (!value->is_number() || !(value->get<double>() >= 0) ||
        !(value->get<double>() <= 1e18))
      return bad(field, "must be a number from 0 to 1e18");
    return value->get<double>();
  }

private:
  const Json &object;
  std::string where;
};

/// Kernels and collectives are opaque; the others are copies to the planner,
/// but a fill, which is a kernel.
enum class NodeKind : uint8_t { Opaque, Fill, Copy, Host };

inline std::optional<NodeKind> parseOther(std::string_view kind) {
  return kind == "fill"   ? std::optional(NodeKind::Fill)
         : kind == "copy" ? std::optional(NodeKind::Copy)
         : kind == "host" ? std::optional(NodeKind::Host)
                          : std::nullopt;
}

inline std::optional<OpaqueCall> parseKind(std::string_view kind) {
  static constexpr std::pair<std::string_view, CollectiveKind> kinds[] = {
      {"all_reduce", CollectiveKind::AllReduce},
      {"all_gather", CollectiveKind::AllGather},
      {"reduce_scatter", CollectiveKind::ReduceScatter},
      {"all_to_all", CollectiveKind::AllToAll},
      {"permute", CollectiveKind::Permute},
      {"broadcast", CollectiveKind::Broadcast},
      {"send", CollectiveKind::SendRecv},
      {"recv", CollectiveKind::SendRecv},
  };
  OpaqueCall call;
  if (kind == "kernel")
    return call;
  for (auto [name, value] : kinds)
    if (name == kind) {
      call.isCollective = true;
      call.kind = value;
      return call;
    }
  return std::nullopt;
}

/// Whether a kernel is called what XLA calls a slice at an offset that is read:
/// by "op", else by its name up to the number.
inline bool isSliceName(std::string_view name) {
  name = name.substr(0, name.find('.'));
  return name == "dynamic-slice" || name == "dynamic_slice";
}

/// Parses the text once, without keeping its nodes: each is given to `take`,
/// and gone after that. The rest has an empty array of nodes.
template <typename Take>
Result<Json> parseNodes(std::string_view text, std::string_view source,
                        Take take) {
  bool isInside = false;
  std::optional<Error> fault;
  const Json::parser_callback_t look = [&](int depth, Json::parse_event_t event,
                                           Json &parsed) {
    using enum Json::parse_event_t;
    if (depth == 1 && event == key)
      isInside = parsed == "nodes";
    const bool isNode =
        isInside && depth == 2 &&
        (event == object_end || event == array_end || event == value);
    if (!isNode)
      return true;
    if (!fault)
      if (Result<void> taken = take(parsed); !taken)
        fault = std::move(taken.error());
    return false;
  };
  // The position comes only with the library's exception.
  try {
    Json root = Json::parse(text.begin(), text.end(), look);
    if (fault)
      return fail(std::move(*fault));
    return root;
  } catch (const Json::parse_error &error) {
    return fail(
        ErrorKind::Invalid,
        fmt::format("{}: not valid JSON at {}", source,
                    placeIn(text, std::max<size_t>(error.byte, 1) - 1)));
  } catch (const Json::exception &) { // a number beyond all types
    return fail(ErrorKind::Invalid,
                fmt::format("{}: a number in it is too large", source));
  }
}

} // namespace mgpu::planner

#endif // MGPU_PLANNER_DAGFILE_DAGJSONFIELDS_H

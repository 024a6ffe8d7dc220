// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_JSONFIELDS_H
#define MGPU_SUPPORT_JSONFIELDS_H

// Structs as JSON objects. One function names the fields of a struct, and both
// directions use it:
//
//   void fields(JsonFields &f, Part &part) {
//     f("name", part.name);
//     f("sizes", part.sizes);
//   }
//
// Reading is strict, as the text may come from anyone: a field that is missing,
// unknown, of another type or out of its type's range is an error that names
// the field. Only a field that was added later may be missing.

#include "support/Types.h"

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

namespace mgpu {

class JsonFields {
public:
  using json = nlohmann::json;

  template <typename T>
  static json write(const T &value) {
    json out;
    put(out, const_cast<T &>(value)); // fields() must not change it
    return out;
  }
  /// write() on one line. Bytes that are not UTF-8 are replaced.
  template <typename T>
  static std::string text(const T &value) {
    return write(value).dump(-1, ' ', false, json::error_handler_t::replace);
  }
  /// Invalid for JSON that write() would not have made. `what` begins the
  /// sentence: "the header of kernel k".
  template <typename T>
  static Result<T> read(std::string_view what, std::string_view text) {
    T value;
    std::string wrong;
    const json in = json::parse(text, nullptr, false);
    if (in.is_discarded())
      return fail(ErrorKind::Invalid, std::string(what) + " is not JSON");
    if (!take(in, value, wrong))
      return fail(ErrorKind::Invalid,
                  std::string(what) + " has " +
                      (wrong.empty() ? "the wrong type"
                                     : "no valid field '" + wrong + "'"));
    return value;
  }

  bool reads() const { return in != nullptr; }
  template <typename T>
  void operator()(const char *name, T &value) {
    if (out) {
      put((*out)[name], value);
      return;
    }
    ++numRead;
    std::string inside;
    auto at = in->find(name);
    if (at == in->end() || !take(*at, value, inside))
      refuse(inside.empty() ? name : name + ("." + inside));
  }
  /// A field that older versions did not write: where it is missing, `value`
  /// stays as it is.
  template <typename T>
  void added(const char *name, T &value) {
    if (out || in->contains(name))
      (*this)(name, value);
  }
  /// Demands of a field that was read more than its type.
  void require(bool holds, const char *name) {
    if (in && !holds)
      refuse(name);
  }

private:
  JsonFields(const json *in, json *out) : in(in), out(out) {}

  void refuse(std::string name) {
    if (wrong.empty())
      wrong = std::move(name);
  }

  template <typename T>
  static constexpr bool isList = requires(T &list) {
    list.begin();
  };
  template <typename T>
  static constexpr bool isOptional = requires(T &value) {
    value.has_value();
  };

  template <typename T>
  static void put(json &out, T &value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      out = value;
    } else if constexpr (std::is_same_v<T, ElementType>) {
      out = std::string(toString(value));
    } else if constexpr (std::is_same_v<T, Dim3>) {
      out = {value.x, value.y, value.z};
    } else if constexpr (isList<T>) {
      out = json::array();
      for (auto &each : value)
        put(out.emplace_back(), each);
    } else if constexpr (isOptional<T>) {
      if (value)
        put(out, *value);
    } else {
      out = json::object();
      JsonFields f(nullptr, &out);
      fields(f, value);
    }
  }

  /// `wrong` becomes the path of the field inside of `value` that is at fault.
  template <typename T>
  static bool take(const json &in, T &value, std::string &wrong) {
    if constexpr (std::is_same_v<T, bool>) {
      return in.is_boolean() && (value = in.get<bool>(), true);
    } else if constexpr (std::is_unsigned_v<T>) {
      if (!in.is_number_unsigned() ||
          in.get<uint64_t>() > std::numeric_limits<T>::max())
        return false;
      value = T(in.get<uint64_t>());
      return true;
    } else if constexpr (std::is_same_v<T, int64_t>) {
      return in.is_number_integer() && (value = in.get<int64_t>(), true);
    } else if constexpr (std::is_same_v<T, double>) {
      return in.is_number() && (value = in.get<double>(), true);
    } else if constexpr (std::is_same_v<T, std::string>) {
      return in.is_string() && (value = in.get<std::string>(), true);
    } else if constexpr (std::is_same_v<T, ElementType>) {
      auto type = parseElementType(in.is_string() ? in.get<std::string>() : "");
      return type && (value = *type, true);
    } else if constexpr (std::is_same_v<T, Dim3>) {
      std::array<uint32_t, 3> sizes{};
      if (!take(in, sizes, wrong))
        return false;
      value = {sizes[0], sizes[1], sizes[2]};
      return true;
    } else if constexpr (isList<T>) {
      if (!in.is_array())
        return false;
      if constexpr (requires { value.resize(1); })
        value.resize(in.size());
      if (value.size() != in.size())
        return false;
      for (size_t k = 0; k < in.size(); ++k)
        if (!take(in[k], value[k], wrong))
          return false;
      return true;
    } else if constexpr (isOptional<T>) {
      if (in.is_null())
        return value.reset(), true;
      return take(in, value.emplace(), wrong);
    } else {
      if (!in.is_object())
        return false;
      JsonFields f(&in, nullptr);
      fields(f, value);
      if (f.wrong.empty() && f.numRead != in.size())
        f.wrong = "?"; // one that this version does not know
      wrong = f.wrong;
      return wrong.empty();
    }
  }

  const json *in;
  json *out;
  size_t numRead = 0;
  std::string wrong;
};

} // namespace mgpu

#endif // MGPU_SUPPORT_JSONFIELDS_H

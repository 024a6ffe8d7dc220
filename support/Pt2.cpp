// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Pt2.h"

#include "support/Escape.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mgpu {

using Json = nlohmann::json;

namespace {

constexpr uint64_t mostJson = uint64_t(256) << 20;
/// The most bytes of a tensor whose strides repeat elements.
constexpr uint64_t mostRepeated = uint64_t(1) << 30;
constexpr const char *saveAgain = "save it again with torch.export.save of "
                                  "torch 2.8 or newer";

/// A whole number of JSON that is not negative.
std::optional<int64_t> wholeNumber(const Json &value) {
  if (!value.is_number_unsigned() ||
      value.get<uint64_t>() > uint64_t(INT64_MAX))
    return std::nullopt;
  return value.get<int64_t>();
}

/// {"as_int": 3}
std::optional<int64_t> symInt(const Json &value) {
  auto at = value.is_object() ? value.find("as_int") : value.end();
  return value.is_object() && at != value.end() ? wholeNumber(*at)
                                                : std::nullopt;
}

std::optional<std::vector<int64_t>> symInts(const Json &about,
                                            const char *key) {
  auto list = about.find(key);
  if (list == about.end() || !list->is_array())
    return std::nullopt;
  std::vector<int64_t> all;
  for (const Json &each : *list) {
    auto value = symInt(each);
    if (!value)
      return std::nullopt;
    all.push_back(*value);
  }
  return all;
}

std::string_view textOf(const HeldBytes &held) {
  return {reinterpret_cast<const char *>(held.bytes.data()), held.bytes.size()};
}

} // namespace

std::optional<ElementType> torchElementType(int64_t number) {
  switch (number) {
  case 2:
    return ElementType::I8;
  case 3:
    return ElementType::I16;
  case 4:
    return ElementType::I32;
  case 5:
    return ElementType::I64;
  case 6:
    return ElementType::F16;
  case 7:
    return ElementType::F32;
  case 8:
    return ElementType::F64;
  case 12:
    return ElementType::I1;
  case 13:
    return ElementType::BF16;
  case 29:
    return ElementType::F8E4M3FN;
  case 30:
    return ElementType::F8E5M2;
  default:
    return std::nullopt;
  }
}

tl::unexpected<Error> Pt2Archive::broken(const std::string &what) const {
  return fail(
      ErrorKind::Invalid,
      fmt::format("'{}' is not a valid .pt2 file: {}", zip.path(), what));
}

Result<Pt2Archive> Pt2Archive::open(const std::string &path) {
  Pt2Archive archive;
  MGPU_TRY_ASSIGN(archive.zip, ZipFile::open(path));
  const auto &entries = archive.zip.entries();
  auto refuse = [&](std::string_view what) {
    return fail(ErrorKind::Unsupported,
                fmt::format("'{}' {}: {}", path, what, saveAgain));
  };
  if (entries.empty())
    return archive.broken("the archive is empty");
  const std::string &first = entries.begin()->first;
  const size_t slash = first.find('/');
  archive.root = slash == first.npos ? "" : first.substr(0, slash + 1);
  auto hasUnder = [&](const std::string &name) {
    auto at = entries.lower_bound(archive.root + name);
    return at != entries.end() && at->first.starts_with(archive.root + name);
  };
  if (entries.contains("serialized_exported_program.json") ||
      hasUnder("serialized_exported_program.json"))
    return refuse("has the layout of torch 2.7 or older");
  if (hasUnder("data/aotinductor"))
    return refuse("is an archive of AOTInductor, which has compiled code and "
                  "no graph");
  if (hasUnder("data.pkl"))
    return refuse("is a pickle of torch.save or torch.jit.save, which is never "
                  "unpickled");
  if (!hasUnder("models/"))
    return archive.broken("it has no folder 'models' (a zip of another kind?)");
  if (hasUnder("byteorder")) {
    MGPU_TRY_ASSIGN(auto order,
                    archive.zip.read(archive.root + "byteorder", 16));
    if (textOf(order) != "little")
      return refuse("is big-endian");
  }
  return archive;
}

Result<std::string> Pt2Archive::model() const {
  std::vector<std::string> models;
  for (const auto &[name, entry] : zip.entries())
    if (name.starts_with(root + "models/") && name.ends_with(".json"))
      models.push_back(name);
  if (models.size() != 1)
    return fail(models.empty() ? ErrorKind::Invalid : ErrorKind::Unsupported,
                fmt::format("'{}' has {} models; one is read", zip.path(),
                            models.size()));
  MGPU_TRY_ASSIGN(auto bytes, zip.read(models.front(), mostJson));
  return std::string(textOf(bytes));
}

/// The table of `weights` or `constants`: name -> what is said of it.
Result<const Json *> Pt2Archive::config(const char *kind) {
  if (auto known = configs.find(kind); known != configs.end())
    return known->second.get();
  Json table = Json::object();
  const std::string begin = fmt::format("{}data/{}/", root, kind),
                    end = fmt::format("_{}_config.json", kind);
  for (const auto &[name, entry] : zip.entries()) {
    if (!name.starts_with(begin) || !name.ends_with(end))
      continue;
    MGPU_TRY_ASSIGN(auto bytes, zip.read(name, mostJson));
    Json json = Json::parse(textOf(bytes), nullptr, false);
    if (!json.is_object() || !json.contains("config") ||
        !json["config"].is_object())
      return broken(
          fmt::format("'{}' is not JSON with a 'config'", escaped(name, 200)));
    table = std::move(json["config"]);
    break;
  }
  auto &kept = configs[kind];
  kept = std::make_shared<const Json>(std::move(table));
  return kept.get();
}

Result<std::pair<const char *, const Json *>>
Pt2Archive::find(const std::string &name) {
  for (const char *kind : {"weights", "constants"}) {
    MGPU_TRY_ASSIGN(const Json *all, config(kind));
    if (auto at = all->find(name); at != all->end())
      return std::pair(kind, &*at);
  }
  return std::pair<const char *, const Json *>(nullptr, nullptr);
}

Result<bool> Pt2Archive::has(const std::string &name) {
  MGPU_TRY_ASSIGN(auto found, find(name));
  return found.first != nullptr;
}

Result<Pt2Tensor> Pt2Archive::tensor(const std::string &name) {
  MGPU_TRY_ASSIGN(auto found, find(name));
  const char *kind = found.first;
  const std::string shown = escaped(name, 200);
  if (!kind)
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' has no weight '{}'", zip.path(), shown));
  const Json &about = *found.second;
  auto text = [&](const char *key) {
    auto at = about.is_object() ? about.find(key) : about.end();
    return about.is_object() && at != about.end() && at->is_string()
               ? at->get<std::string>()
               : std::string();
  };
  const bool isPickled = about.is_object() && about.contains("use_pickle") &&
                         about["use_pickle"] != false;
  const std::string entry = text("path_name");
  if (isPickled || entry.starts_with("custom_obj"))
    return fail(ErrorKind::Unsupported,
                fmt::format("weight '{}' of '{}' is pickled, and nothing is "
                            "unpickled: {}",
                            shown, zip.path(), saveAgain));
  if (entry.empty() || !about.contains("tensor_meta") ||
      !about["tensor_meta"].is_object())
    return broken(fmt::format("weight '{}' has no path or type", shown));
  MGPU_TRY_ASSIGN(auto payload,
                  zip.read(fmt::format("{}data/{}/{}", root, kind, entry),
                           defaultFileLimit));
  return strided(shown, about["tensor_meta"], std::move(payload));
}

Result<Pt2Tensor> Pt2Archive::strided(const std::string &name,
                                      const Json &about,
                                      HeldBytes payload) const {
  auto wrong = [&](const std::string &what) {
    return broken(fmt::format("weight '{}' {}", name, what));
  };
  const auto dtype =
      about.contains("dtype") ? wholeNumber(about["dtype"]) : std::nullopt;
  const auto sizes = symInts(about, "sizes"),
             strides = symInts(about, "strides");
  const auto offset = about.contains("storage_offset")
                          ? symInt(about["storage_offset"])
                          : std::optional<int64_t>(0);
  if (!dtype || !sizes || !strides || !offset ||
      sizes->size() != strides->size())
    return wrong("has no valid dtype, sizes, strides or offset");
  const auto type = torchElementType(*dtype);
  if (!type)
    return fail(ErrorKind::Unsupported,
                fmt::format("weight '{}' of '{}' has PyTorch's type {}, which "
                            "is not supported",
                            name, zip.path(), *dtype));
  MGPU_TRY_ASSIGN(int64_t bytes, arrayBytes(*type, *sizes));
  const int64_t width = sizeBytes(*type),
                have = int64_t(payload.bytes.size()) / width;
  if (bytes > int64_t(std::max(uint64_t(payload.bytes.size()), mostRepeated)))
    return wrong("repeats elements to more than 1 GiB");
  Pt2Tensor tensor{*type, *sizes, {}};
  if (bytes == 0)
    return tensor;
  auto outside = [&] {
    return wrong(
        fmt::format("lies outside of its {} bytes", payload.bytes.size()));
  };
  // The last element it reads; each step is checked, so that none overflows.
  int64_t last = *offset, expected = 1;
  bool isContiguous = true;
  for (size_t k = sizes->size(); k-- > 0;) {
    const int64_t steps = (*sizes)[k] - 1, stride = (*strides)[k];
    if (last >= have || (steps > 0 && stride > (have - 1 - last) / steps))
      return outside();
    last += steps * stride;
    isContiguous &= steps == 0 || stride == expected;
    expected *= (*sizes)[k];
  }
  if (last >= have)
    return outside();
  if (isContiguous) {
    tensor.data = {
        payload.bytes.subspan(size_t(*offset * width), size_t(bytes)),
        std::move(payload.holder)};
    return tensor;
  }
  const auto copy = std::make_shared<std::vector<std::byte>>(size_t(bytes));
  std::vector<int64_t> at(sizes->size());
  int64_t from = *offset;
  for (int64_t to = 0; to < bytes; to += width) {
    std::memcpy(&(*copy)[size_t(to)], &payload.bytes[size_t(from * width)],
                size_t(width));
    for (size_t k = sizes->size(); k-- > 0;) {
      from += (*strides)[k];
      if (++at[k] < (*sizes)[k])
        break;
      from -= at[k] * (*strides)[k];
      at[k] = 0;
    }
  }
  tensor.data = {*copy, copy};
  return tensor;
}

Result<Array> readPt2Tensor(const std::string &path, const std::string &name) {
  MGPU_TRY_ASSIGN(Pt2Archive archive, Pt2Archive::open(path));
  MGPU_TRY_ASSIGN(const Pt2Tensor tensor, archive.tensor(name));
  const std::span<const std::byte> bytes = tensor.data.bytes;
  return Array{tensor.elementType, tensor.shape, {bytes.begin(), bytes.end()}};
}

} // namespace mgpu

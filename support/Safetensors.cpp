// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Safetensors.h"

#include "support/FileIO.h"

#include <array>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mgpu {
namespace {

/// The limit of the format's own reader.
constexpr uint64_t maxHeaderBytes = 100'000'000;

std::optional<ElementType> parseDtype(std::string_view text) {
  static constexpr std::pair<std::string_view, ElementType> table[] = {
      {"BOOL", ElementType::I1},        {"U8", ElementType::I8},
      {"I8", ElementType::I8},          {"U16", ElementType::I16},
      {"I16", ElementType::I16},        {"U32", ElementType::I32},
      {"I32", ElementType::I32},        {"U64", ElementType::I64},
      {"I64", ElementType::I64},        {"F8_E4M3", ElementType::F8E4M3FN},
      {"F8_E5M2", ElementType::F8E5M2}, {"F16", ElementType::F16},
      {"BF16", ElementType::BF16},      {"F32", ElementType::F32},
      {"F64", ElementType::F64},
  };
  for (auto [name, type] : table)
    if (name == text)
      return type;
  return std::nullopt;
}

std::optional<uint64_t> asSize(const nlohmann::json &value) {
  if (!value.is_number_unsigned())
    return std::nullopt;
  auto size = value.get<uint64_t>();
  if (size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    return std::nullopt;
  return size;
}

/// Up to eight tensor names for an error message.
std::string someNames(const nlohmann::json &header) {
  std::string names;
  size_t count = 0;
  for (const auto &[key, value] : header.items()) {
    if (key == "__metadata__")
      continue;
    if (++count > 8)
      return names + ", ...";
    names += (names.empty() ? "" : ", ") + key;
  }
  return names.empty() ? "none" : names;
}

} // namespace

Result<SafetensorsEntry> findSafetensor(std::string_view header,
                                        uint64_t dataBytes,
                                        std::string_view tensor,
                                        const std::string &fileName) {
  auto malformed = [&](std::string_view what) {
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' is not a valid .safetensors file: {}",
                            fileName, what));
  };
  nlohmann::json json = nlohmann::json::parse(header, nullptr, false);
  if (!json.is_object())
    return malformed("the header is not a JSON object");
  auto found = json.find(tensor);
  if (found == json.end() || tensor == "__metadata__")
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' has no tensor '{}'; it has {}", fileName,
                            tensor, someNames(json)));
  auto broken = [&](std::string_view what) {
    return malformed(fmt::format("tensor '{}' {}", tensor, what));
  };
  auto member = [&](const char *key) -> const nlohmann::json * {
    if (!found->is_object())
      return nullptr;
    auto it = found->find(key);
    return it == found->end() ? nullptr : &*it;
  };
  const nlohmann::json *dtype = member("dtype");
  const nlohmann::json *shape = member("shape");
  const nlohmann::json *offsets = member("data_offsets");
  if (!dtype || !dtype->is_string() || !shape || !shape->is_array() ||
      !offsets || !offsets->is_array() || offsets->size() != 2)
    return broken("lacks dtype, shape or data_offsets");
  SafetensorsEntry entry;
  const auto &dtypeText = dtype->get_ref<const std::string &>();
  std::optional<ElementType> type = parseDtype(dtypeText);
  if (!type)
    return fail(ErrorKind::Unsupported,
                fmt::format("tensor '{}' of '{}' has dtype '{}', which is not "
                            "supported",
                            tensor, fileName, dtypeText));
  entry.elementType = *type;
  for (const nlohmann::json &value : *shape) {
    std::optional<uint64_t> size = asSize(value);
    if (!size)
      return broken("has a size that is not a whole number");
    entry.shape.push_back(static_cast<int64_t>(*size));
  }
  std::optional<uint64_t> begin = asSize((*offsets)[0]);
  std::optional<uint64_t> end = asSize((*offsets)[1]);
  if (!begin || !end || *begin > *end || *end > dataBytes)
    return broken(fmt::format("lies outside the {} bytes of data (is the file "
                              "truncated?)",
                              dataBytes));
  entry.begin = *begin;
  entry.end = *end;
  Result<int64_t> bytes = arrayBytes(entry.elementType, entry.shape);
  if (!bytes)
    return broken(bytes.error().message);
  if (static_cast<uint64_t>(*bytes) != *end - *begin)
    return broken(fmt::format("has {} bytes, {} needs {}", *end - *begin,
                              describe(entry.elementType, entry.shape),
                              *bytes));
  return entry;
}

Result<Array> readSafetensor(const std::string &path, std::string_view tensor) {
  MGPU_TRY_ASSIGN(uint64_t size, fileSize(path));
  auto malformed = [&](const char *what) {
    return fail(
        ErrorKind::Invalid,
        fmt::format("'{}' is not a valid .safetensors file: {}", path, what));
  };
  if (size < 8)
    return malformed("it is shorter than 8 bytes");
  MGPU_TRY_ASSIGN(std::vector<std::byte> prefix, readFileRange(path, 0, 8));
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | static_cast<uint8_t>(prefix[static_cast<size_t>(i)]);
  if (length > maxHeaderBytes)
    return malformed("its header is longer than 100 MB");
  if (length > size - 8)
    return malformed("the header is truncated");
  MGPU_TRY_ASSIGN(std::vector<std::byte> header,
                  readFileRange(path, 8, length));
  std::string_view text(reinterpret_cast<const char *>(header.data()),
                        header.size());
  MGPU_TRY_ASSIGN(SafetensorsEntry entry,
                  findSafetensor(text, size - 8 - length, tensor, path));
  MGPU_TRY_ASSIGN(
      std::vector<std::byte> bytes,
      readFileRange(path, 8 + length + entry.begin, entry.end - entry.begin));
  return Array{entry.elementType, std::move(entry.shape), std::move(bytes)};
}

} // namespace mgpu

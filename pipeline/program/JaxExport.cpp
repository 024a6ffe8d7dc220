// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/program/JaxExport.h"

#include <cstring>
#include <fmt/format.h>
#include <optional>

namespace mgpu::pipeline {

namespace {

using std::optional, std::nullopt;

/// The number of a field in the table Exported.
enum Field : size_t {
  FunctionName = 1,
  DevicesShort = 6,
  Platforms = 9,
  Module = 13,
  CallingConvention = 14,
  Devices = 18,
  JaxVersion = 27
};

/// A FlatBuffer's root table. Each position is checked against the file's size
/// before it is read, and no table below the root is: nothing can be cyclic.
class RootTable {
public:
  explicit RootTable(std::span<const std::byte> file) : file(file) {
    root = read<uint32_t>(0).value_or(0);
    const auto back = read<int32_t>(root);
    if (!back || root < 4 || root % 4)
      return;
    const int64_t at = int64_t(root) - *back;
    if (at < 0 || uint64_t(at) >= file.size())
      return;
    fields = size_t(at);
    const size_t size = read<uint16_t>(fields).value_or(0);
    if (size >= 4 && size % 2 == 0 && size <= 4 + 2 * mostFields)
      numFields = (size - 4) / 2;
  }

  bool has(Field field) const { return numFields > 0 && place(field); }

  template <typename T>
  optional<T> scalar(Field field) const {
    const size_t at = place(field);
    return at ? read<T>(at) : T();
  }
  /// The bytes of a vector of them, or of a string; empty where there is none.
  optional<std::span<const std::byte>> bytes(Field field) const {
    const size_t at = place(field);
    return at ? bytesAt(at) : std::span<const std::byte>();
  }
  optional<std::string> text(Field field) const { return asText(bytes(field)); }
  optional<std::vector<std::string>> texts(Field field) const;

private:
  static constexpr size_t mostFields = 256;

  template <typename T>
  optional<T> read(size_t at) const {
    T value;
    if (at > file.size() || file.size() - at < sizeof value)
      return nullopt;
    std::memcpy(&value, file.data() + at, sizeof value);
    return value;
  }
  /// 0 where the table does not have the field.
  size_t place(Field field) const {
    if (field >= numFields)
      return 0;
    const size_t offset = read<uint16_t>(fields + 4 + 2 * field).value_or(0);
    return offset ? root + offset : 0;
  }
  /// Where the offset at `at` leads to.
  optional<size_t> follow(size_t at) const {
    const auto offset = read<uint32_t>(at);
    return offset ? optional(at + *offset) : nullopt;
  }
  optional<std::span<const std::byte>> bytesAt(size_t at) const {
    const auto start = follow(at);
    const auto size = start ? read<uint32_t>(*start) : nullopt;
    if (!size || file.size() - (*start + 4) < *size)
      return nullopt;
    return file.subspan(*start + 4, *size);
  }
  static optional<std::string>
  asText(optional<std::span<const std::byte>> bytes) {
    if (!bytes)
      return nullopt;
    return std::string(reinterpret_cast<const char *>(bytes->data()),
                       bytes->size());
  }

  std::span<const std::byte> file;
  size_t root = 0, fields = 0, numFields = 0;
};

optional<std::vector<std::string>> RootTable::texts(Field field) const {
  std::vector<std::string> all;
  const size_t at = place(field);
  if (!at)
    return all;
  const auto start = follow(at);
  const auto count = start ? read<uint32_t>(*start) : nullopt;
  if (!count || *count > mostFields)
    return nullopt;
  for (size_t k = 0; k < *count; ++k) {
    auto text = asText(bytesAt(*start + 4 + 4 * k));
    if (!text)
      return nullopt;
    all.push_back(std::move(*text));
  }
  return all;
}

} // namespace

bool isJaxExport(std::span<const std::byte> file) {
  return RootTable(file).has(Module);
}

Result<JaxExport> readJaxExport(std::span<const std::byte> file,
                                const std::string &name) {
  const RootTable table(file);
  const auto function = table.text(FunctionName), jax = table.text(JaxVersion);
  const auto platforms = table.texts(Platforms);
  const auto module = table.bytes(Module);
  const auto devices = table.scalar<uint32_t>(Devices);
  const auto before = table.scalar<uint16_t>(DevicesShort);
  const auto convention = table.scalar<uint16_t>(CallingConvention);
  if (!function || !jax || !platforms || !module || !devices || !before ||
      !convention)
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' begins as jax.export's files do, but a part "
                            "of it lies outside the file: it is cut or "
                            "damaged; export it again",
                            name));
  return JaxExport{*function,   *jax,
                   *platforms,  *devices ? *devices : *before,
                   *convention, *module};
}

} // namespace mgpu::pipeline

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Npy.h"

#include <array>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

namespace mgpu {
namespace {

constexpr std::string_view magic = "\x93NUMPY";

/// The Python literal NumPy writes as header: a dict of three known keys.
class HeaderParser {
public:
  explicit HeaderParser(std::string_view text) : text(text) {}

  std::string descr;
  bool fortranOrder = false;
  std::vector<int64_t> shape;

  bool parse() {
    bool hasDescr = false, hasOrder = false, hasShape = false;
    if (!take('{'))
      return false;
    while (!take('}')) {
      std::string key;
      if (!takeString(key) || !take(':'))
        return false;
      bool *seen = key == "descr"           ? &hasDescr
                   : key == "fortran_order" ? &hasOrder
                   : key == "shape"         ? &hasShape
                                            : nullptr;
      if (!seen || *seen)
        return false;
      *seen = true;
      bool good = seen == &hasDescr   ? takeString(descr)
                  : seen == &hasOrder ? takeBool(fortranOrder)
                                      : takeTuple(shape);
      if (!good)
        return false;
      if (!take(',')) {
        if (!take('}'))
          return false;
        break;
      }
    }
    skipSpace();
    return text.empty() && hasDescr && hasOrder && hasShape;
  }

private:
  void skipSpace() {
    while (!text.empty() && (text[0] == ' ' || text[0] == '\n'))
      text.remove_prefix(1);
  }
  bool take(char c) {
    skipSpace();
    if (text.empty() || text[0] != c)
      return false;
    text.remove_prefix(1);
    return true;
  }
  bool takeWord(std::string_view word) {
    skipSpace();
    if (!text.starts_with(word))
      return false;
    text.remove_prefix(word.size());
    return true;
  }
  bool takeString(std::string &value) {
    skipSpace();
    if (text.empty() || (text[0] != '\'' && text[0] != '"'))
      return false;
    size_t end = text.find(text[0], 1);
    if (end == std::string_view::npos)
      return false;
    value = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
    return true;
  }
  bool takeBool(bool &value) {
    value = takeWord("True");
    return value || takeWord("False");
  }
  bool takeTuple(std::vector<int64_t> &sizes) {
    if (!take('('))
      return false;
    while (!take(')')) {
      skipSpace();
      int64_t size = 0;
      auto [end, error] =
          std::from_chars(text.data(), text.data() + text.size(), size);
      if (error != std::errc() || size < 0)
        return false;
      text.remove_prefix(static_cast<size_t>(end - text.data()));
      sizes.push_back(size);
      if (!take(','))
        return take(')');
    }
    return true;
  }

  std::string_view text;
};

struct Dtype {
  std::string_view code; ///< without the byte-order character
  ElementType type;
};
// The first entry of a type is the one written.
constexpr std::array dtypes = {
    Dtype{"b1", ElementType::I1},   Dtype{"i1", ElementType::I8},
    Dtype{"u1", ElementType::I8},   Dtype{"i2", ElementType::I16},
    Dtype{"u2", ElementType::I16},  Dtype{"i4", ElementType::I32},
    Dtype{"u4", ElementType::I32},  Dtype{"i8", ElementType::I64},
    Dtype{"u8", ElementType::I64},  Dtype{"f2", ElementType::F16},
    Dtype{"f4", ElementType::F32},  Dtype{"f8", ElementType::F64},
    Dtype{"V2", ElementType::BF16},
};

Result<ElementType> parseDtype(const std::string &descr,
                               const std::string &name,
                               std::optional<ElementType> hint) {
  auto unsupported = [&](std::string_view why) {
    return fail(ErrorKind::Unsupported,
                fmt::format("'{}' has dtype '{}': {}", name, descr, why));
  };
  std::string_view code = descr;
  char order = code.empty() ? ' ' : code[0];
  if (order == '<' || order == '|' || order == '=' || order == '>')
    code.remove_prefix(1);
  if (order == '>' && !code.ends_with('1'))
    return unsupported("big-endian data is not supported, save it with "
                       ".astype(dtype.newbyteorder('<'))");
  if (code == "V1") {
    if (hint == ElementType::F8E4M3FN || hint == ElementType::F8E5M2)
      return *hint;
    return unsupported("one-byte void elements are read only where an f8 "
                       "type is expected");
  }
  for (const Dtype &dtype : dtypes)
    if (dtype.code == code) {
      if (dtype.type == ElementType::I64 && hint == ElementType::Index)
        return ElementType::Index;
      return dtype.type;
    }
  return unsupported("it has no MLIR element type here, convert it first");
}

std::string_view dtypeOf(ElementType type) {
  switch (type) {
  case ElementType::I1:
    return "|b1";
  case ElementType::I8:
    return "|i1";
  case ElementType::I16:
    return "<i2";
  case ElementType::I32:
    return "<i4";
  case ElementType::I64:
  case ElementType::Index:
    return "<i8";
  case ElementType::F8E4M3FN:
  case ElementType::F8E5M2:
    return "|V1";
  case ElementType::F16:
    return "<f2";
  case ElementType::BF16:
    return "<V2";
  case ElementType::F32:
    return "<f4";
  case ElementType::F64:
    return "<f8";
  }
  return "";
}

} // namespace

Result<Array> parseNpy(std::span<const std::byte> data, const std::string &name,
                       std::optional<ElementType> hint) {
  auto malformed = [&](std::string_view what) {
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' is not a valid .npy file: {}", name, what));
  };
  std::string_view text(reinterpret_cast<const char *>(data.data()),
                        data.size());
  if (!text.starts_with(magic))
    return malformed("it does not begin with \\x93NUMPY");
  if (text.size() < 10)
    return malformed("the header is truncated");
  auto byteAt = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  int version = byteAt(6);
  if (version < 1 || version > 3)
    return fail(ErrorKind::Unsupported,
                fmt::format("'{}' is .npy version {}, versions 1 to 3 are "
                            "supported",
                            name, version));
  size_t begin = version == 1 ? 10 : 12;
  if (text.size() < begin)
    return malformed("the header is truncated");
  size_t length = byteAt(8) | size_t(byteAt(9)) << 8;
  if (version > 1)
    length |= size_t(byteAt(10)) << 16 | size_t(byteAt(11)) << 24;
  if (text.size() - begin < length)
    return malformed("the header is truncated");
  HeaderParser header(text.substr(begin, length));
  if (!header.parse())
    return malformed("the header is not {'descr': ..., 'fortran_order': ..., "
                     "'shape': ...}");
  MGPU_TRY_ASSIGN(ElementType type, parseDtype(header.descr, name, hint));
  // In one dimension, and with one element, both orders are the same.
  if (header.fortranOrder && header.shape.size() > 1)
    return fail(ErrorKind::Unsupported,
                fmt::format("'{}' is in Fortran order, save it with "
                            "numpy.ascontiguousarray",
                            name));
  Result<int64_t> bytes = arrayBytes(type, header.shape);
  if (!bytes)
    return malformed(bytes.error().message);
  std::span<const std::byte> body = data.subspan(begin + length);
  if (body.size() != static_cast<uint64_t>(*bytes))
    return malformed(fmt::format("{} needs {} bytes, the file has {}",
                                 describe(type, header.shape), *bytes,
                                 body.size()));
  Array array{type, std::move(header.shape), {body.begin(), body.end()}};
  if (type == ElementType::I1)
    for (std::byte value : array.bytes)
      if (value > std::byte{1})
        return malformed("a boolean is neither 0 nor 1");
  return array;
}

Result<Array> readNpy(const std::string &path, std::optional<ElementType> hint,
                      uint64_t streamLimit) {
  MGPU_TRY_ASSIGN(std::vector<std::byte> data,
                  readFile(path, defaultFileLimit, streamLimit));
  return parseNpy(data, path, hint);
}

std::string npyHeader(ElementType type, std::span<const int64_t> shape) {
  std::string sizes;
  for (int64_t size : shape)
    sizes += fmt::format("{}{},", sizes.empty() ? "" : " ", size);
  if (shape.size() > 1)
    sizes.pop_back();
  std::string dict =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                  dtypeOf(type), sizes);
  // Version 1 holds 65535 bytes: thousands of dimensions, far past any memref.
  size_t length = (10 + dict.size() + 1 + 63) / 64 * 64 - 10;
  dict.resize(length - 1, ' ');
  std::string header(magic);
  header += '\x01';
  header += '\0';
  header += static_cast<char>(length & 0xff);
  header += static_cast<char>(length >> 8);
  return header + dict + '\n';
}

Result<void> writeNpy(const std::string &path, const Array &array) {
  MGPU_TRY_ASSIGN(int64_t bytes, arrayBytes(array.elementType, array.shape));
  if (static_cast<uint64_t>(bytes) != array.bytes.size())
    return fail(ErrorKind::Internal,
                fmt::format("the array for '{}' has {} bytes, {} needs {}",
                            path, array.bytes.size(),
                            describe(array.elementType, array.shape), bytes));
  std::string header = npyHeader(array.elementType, array.shape);
  std::span<const std::byte> pieces[] = {
      std::as_bytes(std::span(header.data(), header.size())), array.bytes};
  return writeFileAtomic(path, pieces);
}

} // namespace mgpu

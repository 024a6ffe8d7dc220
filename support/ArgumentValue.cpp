// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/ArgumentValue.h"

#include "support/Csv.h"
#include "support/FileIO.h"
#include "support/Float.h"
#include "support/Pt2.h"
#include "support/Safetensors.h"

#include <charconv>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mgpu {
namespace {

/// One generated argument; a larger one is a mistake in the program's shapes.
constexpr int64_t maxGeneratedBytes = int64_t(1) << 40;

bool parseUnsigned(std::string_view text, uint64_t &value) {
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

Result<Array> makeArray(std::string_view spec, ElementType type,
                        std::span<const int64_t> shape) {
  for (int64_t size : shape)
    if (size < 0)
      return fail(ErrorKind::Usage,
                  fmt::format("'{}' has no shape of its own and the argument "
                              "is {}: give a file",
                              spec, describe(type, shape)));
  MGPU_TRY_ASSIGN(int64_t bytes, arrayBytes(type, shape));
  if (bytes > maxGeneratedBytes)
    return fail(
        ErrorKind::Invalid,
        fmt::format("an argument of {} is too large", describe(type, shape)));
  return Array{type,
               {shape.begin(), shape.end()},
               std::vector<std::byte>(static_cast<size_t>(bytes))};
}

Result<Array> generateRandom(std::string_view spec, ElementType type,
                             std::span<const int64_t> shape) {
  uint64_t seed = 0;
  if (!parseUnsigned(spec.substr(spec.find(':') + 1), seed))
    return fail(
        ErrorKind::Usage,
        fmt::format("'{}' is not random:SEED with a whole number", spec));
  MGPU_TRY_ASSIGN(Array array, makeArray(spec, type, shape));
  int bits = significandBits(type);
  bool floating = bits != 0;
  if (!floating)
    bits = type == ElementType::I1 ? 1 : type == ElementType::I8 ? 7 : 8;
  size_t width = sizeBytes(type);
  for (size_t i = 0, n = array.bytes.size() / width; i < n; ++i) {
    auto value = static_cast<double>(randomBits(seed, i) >> (64 - bits));
    storeNumber(floating ? std::ldexp(value, -bits) : value, type,
                array.bytes.data() + i * width);
  }
  return array;
}

Result<Array> generateIota(std::string_view spec, ElementType type,
                           std::span<const int64_t> shape) {
  MGPU_TRY_ASSIGN(Array array, makeArray(spec, type, shape));
  size_t width = sizeBytes(type);
  for (size_t i = 0, n = array.bytes.size() / width; i < n; ++i)
    if (!storeNumber(static_cast<double>(i), type,
                     array.bytes.data() + i * width))
      return fail(ErrorKind::Invalid,
                  fmt::format("iota reaches {}, which {} cannot hold", i,
                              toString(type)));
  return array;
}

Result<Array> fillNumber(std::string_view spec, ElementType type,
                         std::span<const int64_t> shape) {
  std::byte element[8];
  if (NumberText outcome = parseNumber(spec, type, element);
      outcome != NumberText::Stored)
    return fail(ErrorKind::Invalid, whyNotStored(outcome, spec, type));
  MGPU_TRY_ASSIGN(Array array, makeArray(spec, type, shape));
  size_t width = sizeBytes(type);
  for (size_t i = 0; i < array.bytes.size(); i += width)
    std::copy(element, element + width, array.bytes.begin() + long(i));
  return array;
}

/// "4096x4096"; an empty text is a scalar.
std::optional<std::vector<int64_t>> parseShape(std::string_view text) {
  std::vector<int64_t> shape;
  while (!text.empty()) {
    int64_t size = 0;
    auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || size < 0)
      return std::nullopt;
    shape.push_back(size);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.empty())
      break;
    if (text[0] != 'x' || text.size() == 1)
      return std::nullopt;
    text.remove_prefix(1);
  }
  return shape;
}

Result<Array> readRaw(std::string_view spec) {
  std::string_view rest = spec.substr(std::string_view("raw:").size());
  size_t first = rest.find(':');
  size_t second = first == rest.npos ? rest.npos : rest.find(':', first + 1);
  if (second == rest.npos || second + 1 == rest.size())
    return fail(ErrorKind::Usage,
                fmt::format("'{}' is not raw:TYPE:SHAPE:FILE, such as "
                            "raw:bf16:4096x4096:weights.bin",
                            spec));
  std::optional<ElementType> type = parseElementType(rest.substr(0, first));
  if (!type)
    return fail(ErrorKind::Usage,
                fmt::format("'{}' in '{}' is not an element type such as f32 "
                            "or bf16",
                            rest.substr(0, first), spec));
  std::string_view shapeText = rest.substr(first + 1, second - first - 1);
  std::optional<std::vector<int64_t>> shape = parseShape(shapeText);
  if (!shape)
    return fail(ErrorKind::Usage,
                fmt::format("'{}' in '{}' is not a shape such as 4096x4096",
                            shapeText, spec));
  std::string path(rest.substr(second + 1));
  MGPU_TRY_ASSIGN(int64_t bytes, arrayBytes(*type, *shape));
  auto wrongSize = [&](uint64_t size) {
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' has {} bytes, {} needs {}", path, size,
                            describe(*type, *shape), bytes));
  };
  // Only a regular file has a size before it is read.
  if (Result<uint64_t> size = fileSize(path); size && *size != uint64_t(bytes))
    return wrongSize(*size);
  MGPU_TRY_ASSIGN(std::vector<std::byte> data,
                  readFile(path, defaultFileLimit, uint64_t(bytes)));
  if (data.size() != uint64_t(bytes))
    return wrongSize(data.size());
  return Array{*type, std::move(*shape), std::move(data)};
}

struct CsvSpec {
  std::string path;
  std::string_view columns, rows;
};

/// Splits FILE.csv[.gz][:COLUMNS][@ROWS]; nothing where `spec` has no such
/// form.
std::optional<CsvSpec> splitCsv(std::string_view spec) {
  size_t at = spec.rfind(".csv");
  if (at == spec.npos)
    return std::nullopt;
  size_t end = at + 4;
  if (spec.substr(end).starts_with(".gz"))
    end += 3;
  CsvSpec result{std::string(spec.substr(0, end)), {}, {}};
  std::string_view rest = spec.substr(end);
  if (rest.empty())
    return result;
  size_t rowsAt = rest.find('@');
  if (rowsAt != rest.npos) {
    result.rows = rest.substr(rowsAt + 1);
    if (result.rows.empty())
      return std::nullopt;
    rest = rest.substr(0, rowsAt);
  }
  if (rest.empty())
    return result;
  if (rest[0] != ':' || rest.size() == 1)
    return std::nullopt;
  result.columns = rest.substr(1);
  return result;
}

Result<Array> loadCsv(const CsvSpec &spec, ElementType type,
                      std::span<const int64_t> expectedShape) {
  IndexRanges columns, rows;
  if (!spec.columns.empty()) {
    MGPU_TRY_ASSIGN(columns, parseIndexRanges(spec.columns));
  }
  if (!spec.rows.empty()) {
    MGPU_TRY_ASSIGN(rows, parseIndexRanges(spec.rows));
  }
  MGPU_TRY_ASSIGN(Array array, readCsv(spec.path, type, columns, rows));
  if (expectedShape.size() < 2) {
    if (array.shape[1] == 1)
      array.shape.pop_back();
    else if (array.shape[0] == 1)
      array.shape.erase(array.shape.begin());
    if (expectedShape.empty() && array.shape == std::vector<int64_t>{1})
      array.shape.clear();
  }
  return array;
}

/// The most bytes that a .npy file of the expected array may hold; the default
/// where a size is unknown.
uint64_t npyLimit(ElementType type, std::span<const int64_t> shape) {
  constexpr uint64_t maxHeader = uint64_t(1) << 20; // numpy itself takes 10,000
  for (int64_t size : shape)
    if (size < 0)
      return defaultStreamLimit;
  Result<int64_t> bytes = arrayBytes(type, shape);
  return bytes ? uint64_t(*bytes) + maxHeader : defaultStreamLimit;
}

/// The file and the tensor of FILE.safetensors:TENSOR and FILE.pt2:TENSOR;
/// empty for other forms.
std::pair<std::string, std::string> splitTensor(std::string_view spec) {
  for (std::string_view ending : {".safetensors:", ".pt2:"})
    if (const size_t at = spec.rfind(ending); at != spec.npos) {
      const size_t colon = at + ending.size() - 1;
      return {std::string(spec.substr(0, colon)),
              std::string(spec.substr(colon + 1))};
    }
  return {};
}

Result<Array> loadTyped(std::string_view spec, ElementType type,
                        std::span<const int64_t> expectedShape) {
  if (spec.starts_with("raw:"))
    return readRaw(spec);
  if (spec.ends_with(".npy"))
    return readNpy(std::string(spec), type, npyLimit(type, expectedShape));
  const auto [path, tensor] = splitTensor(spec);
  if (path.empty())
    return fail(ErrorKind::Usage,
                fmt::format("'{}' is not a value: expected a number, zeros, "
                            "iota, random:SEED, FILE.npy, "
                            "FILE.csv[.gz]:COLUMNS, FILE.safetensors:TENSOR, "
                            "FILE.pt2:TENSOR or raw:TYPE:SHAPE:FILE",
                            spec));
  return path.ends_with(".pt2") ? readPt2Tensor(path, tensor)
                                : readSafetensor(path, tensor);
}

bool looksLikeNumber(std::string_view spec) {
  std::byte ignored[8];
  return parseNumber(spec, ElementType::F64, ignored) !=
             NumberText::Malformed ||
         spec == "true" || spec == "false";
}

} // namespace

std::string argumentFile(std::string_view spec) {
  if (spec.starts_with("raw:")) {
    const size_t shape = spec.find(':', 4);
    const size_t file = shape == spec.npos ? shape : spec.find(':', shape + 1);
    return file == spec.npos ? "" : std::string(spec.substr(file + 1));
  }
  if (spec.ends_with(".npy"))
    return std::string(spec);
  if (std::optional<CsvSpec> csv = splitCsv(spec))
    return csv->path;
  return splitTensor(spec).first;
}

uint64_t randomBits(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

/// NumPy's name of a type; "" for types that it has not.
static std::string_view numpyName(ElementType type) {
  switch (type) {
  case ElementType::I1:
    return "bool";
  case ElementType::I8:
    return "int8";
  case ElementType::I16:
    return "int16";
  case ElementType::I32:
    return "int32";
  case ElementType::I64:
  case ElementType::Index:
    return "int64";
  case ElementType::F16:
    return "float16";
  case ElementType::F32:
    return "float32";
  case ElementType::F64:
    return "float64";
  default:
    return "";
  }
}

/// The call of NumPy that makes the argument of the array, where there is one.
static std::string remedyFor(const Array &array, ElementType type,
                             std::span<const int64_t> shape) {
  auto count = [](std::span<const int64_t> sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t(1),
                           std::multiplies<>());
  };
  if (count(array.shape) != count(shape))
    return "";
  std::string call;
  if (array.elementType != type) {
    if (numpyName(type).empty())
      return "";
    call += fmt::format(".astype(numpy.{})", numpyName(type));
  }
  if (!shapeFits(array.shape, shape))
    call += fmt::format(".reshape({})", fmt::join(shape, ", "));
  return "; save it after " + call;
}

Result<Array> loadArgument(std::string_view spec, ElementType expectedType,
                           std::span<const int64_t> expectedShape) {
  if (spec == "zeros")
    return makeArray(spec, expectedType, expectedShape);
  if (spec == "iota")
    return generateIota(spec, expectedType, expectedShape);
  if (spec.starts_with("random:"))
    return generateRandom(spec, expectedType, expectedShape);
  if (looksLikeNumber(spec))
    return fillNumber(spec, expectedType, expectedShape);
  std::optional<CsvSpec> csv;
  if (!spec.starts_with("raw:") && !spec.ends_with(".npy"))
    csv = splitCsv(spec);
  MGPU_TRY_ASSIGN(Array array,
                  csv ? loadCsv(*csv, expectedType, expectedShape)
                      : loadTyped(spec, expectedType, expectedShape));
  // i64 and index are the same 64 bits in a file.
  if (array.elementType == ElementType::I64 &&
      expectedType == ElementType::Index)
    array.elementType = ElementType::Index;
  if (array.elementType != expectedType ||
      !shapeFits(array.shape, expectedShape))
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' is {}, the argument is {}{}", spec,
                            describe(array.elementType, array.shape),
                            describe(expectedType, expectedShape),
                            remedyFor(array, expectedType, expectedShape)));
  return array;
}

} // namespace mgpu

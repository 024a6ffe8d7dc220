// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Array.h"

#include "support/Float.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

namespace mgpu {

Result<int64_t> arrayBytes(ElementType type, std::span<const int64_t> shape) {
  constexpr int64_t limit = int64_t(1) << 62;
  bool empty = false;
  for (int64_t size : shape) {
    if (size < 0)
      return fail(ErrorKind::Invalid,
                  fmt::format("the size {} in shape {} is negative", size,
                              describe(type, shape)));
    empty |= size == 0;
  }
  if (empty)
    return 0;
  int64_t bytes = sizeBytes(type);
  for (int64_t size : shape) {
    if (size > limit / bytes)
      return fail(ErrorKind::Invalid, fmt::format("the array {} is too large",
                                                  describe(type, shape)));
    bytes *= size;
  }
  return bytes;
}

std::string describe(ElementType type, std::span<const int64_t> shape) {
  std::string text;
  for (int64_t size : shape)
    text += size < 0 ? "?x" : fmt::format("{}x", size);
  text += toString(type);
  return text;
}

bool shapeFits(std::span<const int64_t> shape,
               std::span<const int64_t> expected) {
  if (shape.size() != expected.size())
    return false;
  for (size_t i = 0; i < shape.size(); ++i)
    if (expected[i] >= 0 && shape[i] != expected[i])
      return false;
  return true;
}

namespace {

template <typename T>
bool store(T value, std::byte *destination) {
  std::memcpy(destination, &value, sizeof(T));
  return true;
}

template <typename T>
bool storeWhole(double value, std::byte *destination) {
  // 2^(bits-1) is exact in a double, the largest T may not be.
  double end = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (!(value >= -end && value < end) || value != std::floor(value))
    return false;
  return store(static_cast<T>(value), destination);
}

/// Ordinary number syntax, without what from_chars does not take of it.
template <typename T>
NumberText parseAs(std::string_view text, T &value) {
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || error == std::errc::invalid_argument)
    return NumberText::Malformed;
  return error == std::errc() ? NumberText::Stored : NumberText::OutOfRange;
}

/// Whether a number beyond the range of doubles is too small rather than too
/// large: the place of its first digit that is not 0 lies right of the point.
bool isTiny(std::string_view text) {
  const size_t mark = std::min(text.find_first_of("eE"), text.size());
  const std::string_view digits = text.substr(0, mark);
  const size_t first = digits.find_first_of("123456789");
  if (first == digits.npos)
    return true; // 0e999
  const size_t point = std::min(digits.find('.'), digits.size());
  const int64_t place = int64_t(point) - int64_t(first);
  const std::string_view exponent =
      mark < text.size() ? text.substr(mark + 1) : "0";
  int64_t power = 0;
  if (parseAs(exponent.starts_with('+') ? exponent.substr(1) : exponent,
              power) == NumberText::OutOfRange)
    return exponent.starts_with('-');
  return power < -int64_t(text.size()) || power + place < 0;
}

NumberText parseFloating(std::string_view text, double &value) {
  const NumberText outcome = parseAs(text, value);
  if (outcome != NumberText::OutOfRange || !isTiny(text))
    return outcome;
  value = text.starts_with('-') ? -0.0 : 0.0;
  return NumberText::Stored;
}

} // namespace

bool storeNumber(double value, ElementType type, std::byte *destination) {
  switch (type) {
  case ElementType::I1:
    return (value == 0 || value == 1) &&
           store(static_cast<uint8_t>(value), destination);
  case ElementType::I8:
    return storeWhole<int8_t>(value, destination);
  case ElementType::I16:
    return storeWhole<int16_t>(value, destination);
  case ElementType::I32:
    return storeWhole<int32_t>(value, destination);
  case ElementType::I64:
  case ElementType::Index:
    return storeWhole<int64_t>(value, destination);
  case ElementType::F8E4M3FN:
    return store(toF8E4M3FN(value), destination);
  case ElementType::F8E5M2:
    return store(toF8E5M2(value), destination);
  case ElementType::F16:
    return store(toF16(value), destination);
  case ElementType::BF16:
    return store(toBf16(value), destination);
  case ElementType::F32:
    return store(static_cast<float>(value), destination);
  case ElementType::F64:
    return store(value, destination);
  }
  return false;
}

NumberText parseNumber(std::string_view text, ElementType type,
                       std::byte *destination) {
  if (type == ElementType::I1 && (text == "true" || text == "false")) {
    store(static_cast<uint8_t>(text == "true"), destination);
    return NumberText::Stored;
  }
  if (text.starts_with('+') && text.size() > 1 && text[1] != '-')
    text.remove_prefix(1);
  if (type == ElementType::I64 || type == ElementType::Index) {
    int64_t value = 0;
    const NumberText outcome = parseAs(text, value);
    if (outcome == NumberText::Stored)
      store(value, destination);
    if (outcome != NumberText::Malformed)
      return outcome;
  }
  double value = 0;
  if (NumberText outcome = parseFloating(text, value);
      outcome != NumberText::Stored)
    return outcome;
  std::byte stored[8] = {};
  if (float narrow = 0;
      type == ElementType::F32 && parseAs(text, narrow) == NumberText::Stored)
    store(narrow, stored); // rounded once; what is tiny was zero or nearly so
  else if (!storeNumber(value, type, stored))
    return NumberText::OutOfRange;
  if (isFloat(type) && std::isfinite(value)) {
    Array one{type, {}, {stored, stored + sizeBytes(type)}};
    if (!std::isfinite(loadNumber(one, 0)))
      return NumberText::OutOfRange;
  }
  std::copy(stored, stored + sizeBytes(type), destination);
  return NumberText::Stored;
}

bool storeText(std::string_view text, ElementType type,
               std::byte *destination) {
  return parseNumber(text, type, destination) == NumberText::Stored;
}

std::string whyNotStored(NumberText outcome, std::string_view text,
                         ElementType type) {
  const std::string_view shown = text.substr(0, 40);
  if (outcome == NumberText::OutOfRange && isFloat(type))
    return fmt::format("'{}' is too large for {}", shown, toString(type));
  return fmt::format("'{}' is not a number of type {}", shown, toString(type));
}

double loadNumber(const Array &array, int64_t index) {
  const std::byte *source =
      array.bytes.data() + index * sizeBytes(array.elementType);
  auto load = [source]<typename T>(T value) {
    std::memcpy(&value, source, sizeof(T));
    return value;
  };
  switch (array.elementType) {
  case ElementType::I1:
  case ElementType::I8:
    return load(int8_t());
  case ElementType::I16:
    return load(int16_t());
  case ElementType::I32:
    return load(int32_t());
  case ElementType::I64:
  case ElementType::Index:
    return static_cast<double>(load(int64_t()));
  case ElementType::F8E4M3FN:
    return fromF8E4M3FN(load(uint8_t()));
  case ElementType::F8E5M2:
    return fromF8E5M2(load(uint8_t()));
  case ElementType::F16:
    return fromF16(load(uint16_t()));
  case ElementType::BF16:
    return fromBf16(load(uint16_t()));
  case ElementType::F32:
    return load(float());
  case ElementType::F64:
    return load(double());
  }
  return 0;
}

} // namespace mgpu

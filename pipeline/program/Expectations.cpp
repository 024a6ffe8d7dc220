// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/program/Expectations.h"

#include "support/Array.h"
#include "support/Float.h"

#include <cmath>
#include <cstring>
#include <fmt/format.h>

namespace mgpu::pipeline {

using planner::Expectation;

namespace {

/// The bits of an element, and of a float so that its order is theirs.
int64_t orderOf(const Array &array, int64_t index) {
  const uint32_t size = sizeBytes(array.elementType);
  uint64_t bits = 0;
  std::memcpy(&bits, array.bytes.data() + index * size, size);
  if (!isFloat(array.elementType))
    return int64_t(bits);
  const uint64_t sign = uint64_t(1) << (8 * size - 1);
  return bits & sign ? -int64_t(bits & ~sign) : int64_t(bits);
}

bool isAsExpected(const Expectation &how, const Array &found,
                  const Array &expected, int64_t index) {
  const int64_t x = orderOf(found, index), y = orderOf(expected, index);
  const double a = loadNumber(found, index), b = loadNumber(expected, index);
  if (!isFloat(found.elementType))
    return x == y;
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) && std::isnan(b);
  switch (how.how) {
  case Expectation::How::Equal: {
    const uint32_t size = sizeBytes(found.elementType);
    return std::memcmp(found.bytes.data() + index * size,
                       expected.bytes.data() + index * size, size) == 0;
  }
  case Expectation::How::Close: {
    // Numbers are close on one side of zero or through it; infinities only to
    // themselves.
    if (a == b)
      return true;
    if (std::isinf(a) || std::isinf(b))
      return false;
    const uint64_t apart =
        x > y ? uint64_t(x) - uint64_t(y) : uint64_t(y) - uint64_t(x);
    return apart <= how.ulps;
  }
  case Expectation::How::AlmostEqual:
    if (a == b)
      return true;
    return std::isfinite(a) && std::isfinite(b) &&
           std::signbit(a) == std::signbit(b) &&
           std::abs(a - b) <= how.tolerance;
  }
  return false;
}

std::string wordsOf(const Expectation &how) {
  switch (how.how) {
  case Expectation::How::Equal:
    return "equal in bits";
  case Expectation::How::Close:
    return fmt::format("within {} units in the last place", how.ulps);
  case Expectation::How::AlmostEqual:
    return fmt::format("within {:g}", how.tolerance);
  }
  return "";
}

std::string placeIn(const std::vector<int64_t> &shape, int64_t index) {
  std::string text;
  for (size_t k = shape.size(); k-- > 0; index /= shape[k])
    text =
        fmt::format("{}{}{}", index % shape[k], text.empty() ? "" : ", ", text);
  return "[" + text + "]";
}

Array arrayOf(const planner::Program &program, planner::BufferId id,
              capture::Runner &runner) {
  const planner::Buffer &buffer = program.dag.buffer(id);
  std::span<const std::byte> bytes = runner.hostBuffer(id);
  return {buffer.elementType, buffer.shape, {bytes.begin(), bytes.end()}};
}

} // namespace

Result<void> checkExpectations(const planner::Program &program,
                               capture::Runner &runner) {
  for (const Expectation &each : program.expectations) {
    const Array found = arrayOf(program, each.found, runner);
    const Array expected = arrayOf(program, each.expected, runner);
    const int64_t count =
        int64_t(found.bytes.size()) / sizeBytes(found.elementType);
    int64_t wrong = 0, first = -1;
    for (int64_t k = 0; k < count; ++k)
      if (!isAsExpected(each, found, expected, k)) {
        first = first < 0 ? k : first;
        ++wrong;
      }
    if (wrong > 0)
      return fail(
          ErrorKind::Invalid,
          fmt::format("{}: {} of {} elements are not as the program expects "
                      "({}): at {} it is {}, not {}",
                      each.place, wrong, count, wordsOf(each),
                      placeIn(found.shape, first), loadNumber(found, first),
                      loadNumber(expected, first)));
  }
  return {};
}

} // namespace mgpu::pipeline

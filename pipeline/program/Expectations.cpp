// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/program/Expectations.h"

#include "support/Array.h"
#include "support/Float.h"

#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>

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

using planner::HostOutput;

namespace {

std::string elementText(const HostOutput &output, const Array &array,
                        int64_t index) {
  const uint32_t size = sizeBytes(array.elementType);
  if (isFloat(array.elementType))
    return fmt::format("{:g}", loadNumber(array, index));
  uint64_t bits = 0;
  std::memcpy(&bits, array.bytes.data() + index * size, size);
  const unsigned unused = 64 - 8 * size;
  if (array.elementType == ElementType::I1)
    return bits & 1 ? "1" : "0";
  return output.isUnsigned
             ? fmt::format("{}", bits)
             : fmt::format("{}", int64_t(bits << unused) >> unused);
}

/// How the parts of one dimension stand beside each other.
struct Brackets {
  std::string open, close, betweenElements;
  /// Between parts of dimension `dim`, which have dimensions themselves.
  std::function<std::string(size_t dim)> betweenParts;
};

std::string nested(const HostOutput &output, const Array &array, size_t dim,
                   int64_t &next, const Brackets &brackets) {
  if (dim == array.shape.size())
    return elementText(output, array, next++);
  std::string text = brackets.open;
  const bool isInner = dim + 1 == array.shape.size();
  for (int64_t k = 0; k < array.shape[dim]; ++k) {
    if (k > 0)
      text += isInner ? brackets.betweenElements : brackets.betweenParts(dim);
    text += nested(output, array, dim + 1, next, brackets);
  }
  return text + brackets.close;
}

std::string valueText(const HostOutput &output, const Array &array) {
  int64_t next = 0;
  return nested(output, array, 0, next,
                {"( ", " )", ", ", [](size_t) { return ", "; }});
}

std::string shapeText(const HostOutput &output, const Array &array,
                      const void *address) {
  return fmt::format("{}Memref base@ = {} rank = {} offset = {} sizes = [{}] "
                     "strides = [{}]",
                     output.text, address, array.shape.size(), output.offset,
                     fmt::join(array.shape, ", "),
                     fmt::join(output.strides, ", "));
}

std::string memrefText(const HostOutput &output, const Array &array,
                       const void *address) {
  const size_t rank = array.shape.size();
  const std::string text = shapeText(output, array, address) + " data = \n";
  int64_t next = 0;
  const Brackets brackets{
      "[", "]", "," + std::string(rank + 1, ' '),
      [](size_t dim) { return ", \n" + std::string(dim + 1, ' '); }};
  std::string elements = nested(output, array, 0, next, brackets);
  return text + (rank == 0 ? "[" + elements + "]" : elements) + "\n";
}

} // namespace

Result<void> giveOutputs(const planner::Program &program,
                         capture::Runner &runner, const OutputSinks &sinks) {
  for (const HostOutput &each : program.outputs) {
    if (!each.buffer) {
      sinks.print(each.text);
      continue;
    }
    const planner::Buffer &buffer = program.dag.buffer(*each.buffer);
    std::span<const std::byte> bytes = runner.hostBuffer(*each.buffer);
    const Array array{
        buffer.elementType, buffer.shape, {bytes.begin(), bytes.end()}};
    switch (each.kind) {
    case HostOutput::Kind::Text:
      break;
    case HostOutput::Kind::Memref:
      sinks.print(memrefText(each, array, bytes.data()));
      break;
    case HostOutput::Kind::Shape:
      sinks.print(shapeText(each, array, bytes.data()) + "\n");
      break;
    case HostOutput::Kind::Value:
      sinks.print(valueText(each, array) + each.text);
      break;
    case HostOutput::Kind::Flops:
      sinks.printError(
          fmt::format("{:.6f} GFLOPS\n", loadNumber(array, 0) / 1e9));
      break;
    case HostOutput::Kind::Check:
      if (loadNumber(array, 0) != 0)
        break;
      sinks.print(each.text + "\n"); // as the runner does before it aborts
      return fail(
          ErrorKind::Invalid,
          fmt::format("{}: the assertion '{}' fails", each.place, each.text));
    }
  }
  return {};
}

} // namespace mgpu::pipeline

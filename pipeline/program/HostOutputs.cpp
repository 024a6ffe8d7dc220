// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/program/HostOutputs.h"

#include "support/Array.h"
#include "support/Float.h"

#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mgpu::pipeline {

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

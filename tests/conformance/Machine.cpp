// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/conformance/RandomProgram.h"

#include <algorithm>
#include <cmath>

namespace mgpu::conformance {

int64_t View::numElements() const {
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  return count;
}

double exactLimit(ElementType type) {
  switch (type) {
  case ElementType::I8:
    return 127;
  case ElementType::BF16:
    return 256;
  case ElementType::F16:
    return 2048;
  case ElementType::F32:
    return 1 << 24;
  case ElementType::I32:
    return 2147483647.0;
  default:
    return double(int64_t(1) << 53);
  }
}

/// Position in the root of the view's elements, row-major.
static std::vector<int64_t> positions(const View &view, const Root &root) {
  std::vector<int64_t> found{0};
  for (size_t k = 0; k < view.sizes.size(); ++k) {
    std::vector<int64_t> next;
    for (int64_t at : found)
      for (int64_t i = 0; i < view.sizes[k]; ++i)
        next.push_back(at * root.shape[k] + view.offsets[k] +
                       i * view.steps[k]);
    found = std::move(next);
  }
  return found;
}

std::vector<double> Machine::read(const View &view) const {
  std::vector<double> values;
  for (int64_t at : positions(view, program.roots[view.root]))
    values.push_back(memory[view.root][at]);
  return values;
}

bool Machine::write(const View &view, const std::vector<double> &values) {
  const Root &root = program.roots[view.root];
  std::vector<int64_t> where = positions(view, root);
  for (size_t k = 0; k < where.size(); ++k) {
    if (!(std::abs(values[k]) <= exactLimit(root.type)))
      return false;
    memory[view.root][where[k]] = values[k];
  }
  return true;
}

static double clamp(double value) {
  return std::min(std::max(value, -8.0), 8.0);
}

bool Machine::launch(const Op &op) {
  const View &d = op.to[0];
  int64_t rows = d.sizes.size() == 2 ? d.sizes[0] : 1, columns = d.sizes.back();
  std::vector<double> out = read(d), a, b;
  if (!op.from.empty())
    a = read(op.from[0]);
  if (op.from.size() > 1)
    b = read(op.from[1]);
  double limit = exactLimit(program.roots[d.root].type), s = double(op.scalar);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      int64_t at = i * columns + j;
      switch (op.kernel) {
      case KernelTemplate::Fill:
        out[at] = double((3 * i + 2 * j + op.scalar) % 5 - 2);
        break;
      case KernelTemplate::Axpy:
        if (std::abs(s * a[at]) > limit || std::abs(s * a[at] + b[at]) > limit)
          return false;
        out[at] = clamp(s * a[at] + b[at]);
        break;
      case KernelTemplate::Stencil:
        out[at] = a[at] + (j + 1 < columns ? a[at + 1] : 0);
        if (std::abs(out[at]) > limit)
          return false;
        out[at] = clamp(out[at]);
        break;
      case KernelTemplate::Reverse:
        out[at] = a[i * columns + columns - 1 - j];
        break;
      case KernelTemplate::RowSum: {
        double sum = 0;
        for (int64_t k = 0; k < columns; ++k) {
          sum += a[i * columns + k];
          if (std::abs(sum) > limit)
            return false;
        }
        sum -= a[at];
        if (std::abs(sum) > limit)
          return false;
        out[at] = clamp(sum);
        break;
      }
      case KernelTemplate::Evens:
        if (j < columns / 2)
          out[i * columns + 2 * j] = a[at];
        break;
      case KernelTemplate::Guarded:
        if (i + j < op.scalar) {
          if (std::abs(out[at] + a[at]) > limit)
            return false;
          out[at] = clamp(out[at] + a[at]);
        }
        break;
      }
    }
  return write(d, out);
}

bool Machine::runOnce(const Op &op) {
  switch (op.kind) {
  case Op::Alloc:
    for (int root : op.roots) {
      int64_t count = 1;
      for (int64_t size : program.roots[root].shape)
        count *= size;
      memory.resize(std::max(memory.size(), size_t(root) + 1));
      // Nothing may depend on what fresh memory holds.
      memory[root].assign(count, std::nan(""));
    }
    return true;
  case Op::Copy:
  case Op::SendRecv:
    return write(op.to[0], read(op.from[0]));
  case Op::Replicate:
    for (const View &view : op.to)
      if (!write(view, read(op.from[0])))
        return false;
    return true;
  case Op::Scatter:
  case Op::Gather: {
    bool toParts = op.kind == Op::Scatter;
    View slice = toParts ? op.from[0] : op.to[0];
    for (const View &part : toParts ? op.to : op.from) {
      slice.sizes[op.axis] = part.sizes[op.axis];
      if (!(toParts ? write(part, read(slice)) : write(slice, read(part))))
        return false;
      slice.offsets[op.axis] += part.sizes[op.axis] * slice.steps[op.axis];
    }
    return true;
  }
  case Op::Launch:
    return launch(op);
  case Op::Collective:
    return collect(op);
  case Op::Free:
  case Op::StreamWait:
  case Op::SyncStream:
  case Op::SyncDevice:
    return true;
  }
  return false;
}

bool Machine::run(const Op &op) {
  auto before = memory;
  for (int r = 0; r < op.repeat; ++r)
    if (!runOnce(op)) {
      memory = std::move(before);
      return false;
    }
  return true;
}

} // namespace mgpu::conformance

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reference machine's collectives, as their definitions have them: arrays
// are cut and joined along an axis.
#include "tests/conformance/RandomProgram.h"

#include <algorithm>
#include <cmath>

namespace mgpu::conformance {

/// Values of an array, row-major.
struct Block {
  std::vector<int64_t> sizes;
  std::vector<double> values;
};

/// How many elements follow each other where the axis has one index.
static int64_t innerOf(const std::vector<int64_t> &sizes, int axis) {
  int64_t inner = 1;
  for (size_t k = size_t(axis) + 1; k < sizes.size(); ++k)
    inner *= sizes[k];
  return inner;
}

static Block part(const Block &whole, int axis, int64_t index, int64_t count) {
  Block out{whole.sizes, {}};
  out.sizes[axis] /= count;
  int64_t run = out.sizes[axis] * innerOf(whole.sizes, axis);
  for (int64_t at = index * run; at < int64_t(whole.values.size());
       at += count * run)
    out.values.insert(out.values.end(), whole.values.begin() + at,
                      whole.values.begin() + at + run);
  return out;
}

static std::vector<double> joined(const std::vector<Block> &parts, int axis) {
  std::vector<double> out;
  int64_t run = parts[0].sizes[axis] * innerOf(parts[0].sizes, axis);
  for (int64_t at = 0; at < int64_t(parts[0].values.size()); at += run)
    for (const Block &each : parts)
      out.insert(out.end(), each.values.begin() + at,
                 each.values.begin() + at + run);
  return out;
}

/// What all ranks send, combined; none if a value would not be exact.
std::optional<std::vector<double>> Machine::reduced(const Op &op) const {
  std::vector<double> result = read(op.from[0]);
  double limit = exactLimit(program.roots[op.to[0].root].type);
  for (size_t r = 1; r < op.from.size(); ++r) {
    std::vector<double> next = read(op.from[r]);
    for (size_t k = 0; k < result.size(); ++k) {
      double &x = result[k], y = next[k];
      x = op.reduction == ReductionKind::Sum    ? x + y
          : op.reduction == ReductionKind::Prod ? x * y
          : op.reduction == ReductionKind::Min  ? std::min(x, y)
                                                : std::max(x, y);
      if (!(std::abs(x) <= limit))
        return std::nullopt;
    }
  }
  return result;
}

bool Machine::collect(const Op &op) {
  const size_t ranks = op.to.size();
  std::vector<Block> sent;
  for (const View &view : op.from)
    sent.push_back({view.sizes, read(view)});
  std::vector<std::vector<double>> results(ranks);
  std::optional<std::vector<double>> sum;
  if (op.collective == CollectiveKind::AllReduce ||
      op.collective == CollectiveKind::ReduceScatter) {
    sum = reduced(op);
    if (!sum)
      return false;
  }
  for (size_t r = 0; r < ranks; ++r) {
    std::vector<Block> parts;
    switch (op.collective) {
    case CollectiveKind::Broadcast:
      results[r] = sent[op.root].values;
      break;
    case CollectiveKind::AllGather:
      for (size_t s = 0; s < ranks; ++s)
        // Both as long as the result: rank s gives its s-th part.
        parts.push_back(sent[s].sizes == op.to[r].sizes
                            ? part(sent[s], op.axis, int64_t(s), int64_t(ranks))
                            : sent[s]);
      results[r] = joined(parts, op.axis);
      break;
    case CollectiveKind::ReduceScatter:
      results[r] =
          part({sent[r].sizes, *sum}, op.axis, int64_t(r), int64_t(ranks))
              .values;
      break;
    case CollectiveKind::AllToAll:
      for (size_t s = 0; s < ranks; ++s)
        parts.push_back(part(sent[s], op.axis, int64_t(r), int64_t(ranks)));
      results[r] = joined(parts, op.concatAxis);
      break;
    case CollectiveKind::Permute:
      results[r].assign(sent[r].values.size(), 0);
      for (auto [source, target] : op.pairs)
        if (target == int(r))
          results[r] = sent[source].values;
      break;
    default:
      results[r] = *sum;
    }
  }
  for (size_t r = 0; r < ranks; ++r)
    if (!write(op.to[r], results[r]))
      return false;
  return true;
}

} // namespace mgpu::conformance

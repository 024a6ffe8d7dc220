// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/exact/Bounds.h"

#include <algorithm>

namespace mgpu::planner::exact {

namespace {
/// Rows of bits: which activities lie before (or after) each.
class Reach {
public:
  explicit Reach(uint32_t n) : words((n + 63) / 64), bits(size_t(n) * words) {}
  void include(uint32_t a, uint32_t other) {
    for (uint32_t w = 0; w < words; ++w)
      row(a)[w] |= row(other)[w];
    row(a)[other / 64] |= uint64_t(1) << (other % 64);
  }
  bool has(uint32_t a, uint32_t other) const {
    return bits[size_t(a) * words + other / 64] >> (other % 64) & 1;
  }

private:
  uint64_t *row(uint32_t a) { return &bits[size_t(a) * words]; }
  uint32_t words;
  std::vector<uint64_t> bits;
};
} // namespace

/// Least time that `work` units of a resource take.
static Time spread(int64_t work, int32_t capacity) {
  return capacity == 0 ? 0 : Time((work + capacity - 1) / capacity);
}

/// Heads of all activities in `order`; `neighbours` names what lies before.
template <typename Neighbours>
static std::vector<Time> heads(const Problem &problem,
                               const std::vector<uint32_t> &order,
                               Neighbours neighbours) {
  Reach reach(problem.size());
  std::vector<Time> result(problem.size(), 0);
  std::vector<int64_t> work(problem.numResources());
  for (uint32_t a : order) {
    for (uint32_t before : neighbours(a)) {
      reach.include(a, before);
      result[a] =
          std::max(result[a], result[before] + problem.duration(before));
    }
    std::fill(work.begin(), work.end(), 0);
    for (uint32_t other = 0; other < problem.size(); ++other)
      if (reach.has(a, other))
        for (uint32_t r = 0; r < problem.numResources(); ++r)
          work[r] +=
              int64_t(problem.duration(other)) * problem.demand(other, r);
    for (uint32_t r = 0; r < problem.numResources(); ++r)
      result[a] = std::max(result[a], spread(work[r], problem.capacity(r)));
  }
  return result;
}

Paths energeticPaths(const Problem &problem) {
  Paths paths;
  paths.heads = heads(problem, problem.topological(),
                      [&](uint32_t a) { return problem.predecessors(a); });
  std::vector<uint32_t> backward(problem.topological().rbegin(),
                                 problem.topological().rend());
  paths.tails = heads(problem, backward,
                      [&](uint32_t a) { return problem.successors(a); });
  for (uint32_t a = 0; a < problem.size(); ++a)
    paths.length = std::max(paths.length, paths.heads[a] + problem.duration(a) +
                                              paths.tails[a]);
  for (uint32_t r = 0; r < problem.numResources(); ++r) {
    int64_t work = 0;
    for (uint32_t a = 0; a < problem.size(); ++a)
      work += int64_t(problem.duration(a)) * problem.demand(a, r);
    paths.length = std::max(paths.length, spread(work, problem.capacity(r)));
  }
  return paths;
}

} // namespace mgpu::planner::exact

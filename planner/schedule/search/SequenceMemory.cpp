// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/SequenceMemory.h"

#include <algorithm>

namespace mgpu::planner::search {

SequenceMemory::SequenceMemory(const Problem &problem,
                               std::vector<uint32_t> order)
    : problem(problem), places(problem.size()), first(problem.buffers.size()),
      last(problem.buffers.size()),
      levels(problem.devices.size(), std::vector<Level>(problem.size())) {
  sequence.resize(order.size());
  put(0, order);
  measure(0, uint32_t(order.size()));
}

std::vector<uint64_t> SequenceMemory::peaks() const {
  std::vector<uint64_t> most;
  for (size_t d = 0; d < levels.size(); ++d) {
    most.push_back(problem.devices[d].residentBytes);
    for (const Level &level : levels[d])
      most[d] = std::max(most[d], uint64_t(level.during));
  }
  return most;
}

void SequenceMemory::put(uint32_t begin, const std::vector<uint32_t> &part) {
  for (uint32_t k = 0; k < part.size(); ++k) {
    sequence[begin + k] = part[k];
    places[part[k]] = begin + k;
  }
  for (uint32_t node : part)
    for (uint32_t b : problem.touched[node]) {
      std::span<const uint32_t> users = problem.users[b];
      auto earlier = [&](uint32_t x, uint32_t y) {
        return places[x] < places[y];
      };
      first[b] = *std::min_element(users.begin(), users.end(), earlier);
      last[b] = *std::max_element(users.begin(), users.end(), earlier);
    }
}

void SequenceMemory::measure(uint32_t begin, uint32_t end) {
  std::vector<int64_t> now(levels.size());
  for (size_t d = 0; d < levels.size(); ++d)
    now[d] = begin > 0 ? levels[d][begin - 1].after
                       : int64_t(problem.devices[d].residentBytes);
  for (uint32_t k = begin; k < end; ++k) {
    const uint32_t node = sequence[k];
    for (uint32_t b : problem.touched[node])
      if (first[b] == node)
        now[problem.buffers[b].device] += int64_t(problem.buffers[b].bytes);
    for (size_t d = 0; d < levels.size(); ++d)
      levels[d][k].during = now[d];
    for (uint32_t b : problem.touched[node])
      if (last[b] == node && !problem.buffers[b].isKept)
        now[problem.buffers[b].device] -= int64_t(problem.buffers[b].bytes);
    for (size_t d = 0; d < levels.size(); ++d)
      levels[d][k].after = now[d];
  }
}

double SequenceMemory::excess(uint32_t begin, uint32_t end,
                              const std::vector<uint64_t> &targets) const {
  double sum = 0;
  for (size_t d = 0; d < levels.size(); ++d)
    for (uint32_t k = begin; k < end; ++k)
      sum += std::max(0.0, double(levels[d][k].during) - double(targets[d]));
  return sum;
}

double SequenceMemory::reorder(uint32_t begin,
                               const std::vector<uint32_t> &part,
                               const std::vector<uint64_t> &targets) {
  const uint32_t end = begin + uint32_t(part.size());
  const double was = excess(begin, end, targets);
  beforeBegin = begin;
  before.assign(sequence.begin() + begin, sequence.begin() + end);
  put(begin, part);
  measure(begin, end);
  return excess(begin, end, targets) - was;
}

void SequenceMemory::undo() {
  put(beforeBegin, before);
  measure(beforeBegin, beforeBegin + uint32_t(before.size()));
}

} // namespace mgpu::planner::search

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/LowMemoryOrder.h"

#include <algorithm>
#include <set>

namespace mgpu::planner::search {

namespace {

/// Runs nodes one at a time and knows what the next one would free.
class MemoryOrder {
public:
  explicit MemoryOrder(const Problem &problem)
      : problem(problem), keys(problem.size()), missing(problem.size()),
        isReady(problem.size(), 0), open(problem.buffers.size()) {}

  std::vector<uint32_t> run() {
    for (uint32_t i = 0; i < problem.size(); ++i) {
      keys[i] = i;
      missing[i] = problem.before[i].size();
    }
    for (uint32_t b = 0; b < problem.buffers.size(); ++b)
      open[b] = problem.users[b].size();
    delayMakers();
    for (uint32_t i = 0; i < problem.size(); ++i)
      if (missing[i] == 0)
        makeReady(i);
    std::vector<uint32_t> order;
    order.reserve(problem.size());
    while (!ready.empty()) {
      uint32_t node =
          gains.empty() ? ready.begin()->second : gains.begin()->second;
      order.push_back(node);
      finish(node);
    }
    return order;
  }

private:
  void delayMakers() {
    for (uint32_t i = problem.size(); i-- > 0;) {
      uint64_t makes = 0, reads = 0;
      for (uint32_t b : problem.touched[i])
        (problem.users[b].front() == i ? makes : reads) +=
            problem.buffers[b].bytes;
      std::span<const uint32_t> after = problem.after[i];
      if (makes < reads || after.empty())
        continue;
      uint32_t need = keys[after.front()];
      for (uint32_t next : after)
        need = std::min(need, keys[next]);
      keys[i] = std::max(keys[i], need);
    }
  }
  /// By how much the live bytes change from before the node to after it.
  int64_t growth(uint32_t node) const {
    int64_t bytes = 0;
    for (uint32_t b : problem.touched[node]) {
      const ProblemBuffer &buffer = problem.buffers[b];
      if (open[b] == problem.users[b].size())
        bytes += int64_t(buffer.bytes);
      if (open[b] == 1 && !buffer.isKept)
        bytes -= int64_t(buffer.bytes);
    }
    return bytes;
  }
  void noteGain(uint32_t node) {
    if (int64_t bytes = growth(node); bytes < 0)
      gains.insert({bytes, node});
  }
  void makeReady(uint32_t node) {
    isReady[node] = 1;
    ready.insert({keys[node], node});
    noteGain(node);
  }
  void finish(uint32_t node) {
    ready.erase({keys[node], node});
    gains.erase({growth(node), node});
    isReady[node] = 0;
    for (uint32_t b : problem.touched[node]) {
      // The bytes that the ready users of the buffer would free are about to
      // change.
      std::vector<uint32_t> others;
      for (uint32_t user : problem.users[b])
        if (isReady[user])
          others.push_back(user);
      for (uint32_t other : others)
        gains.erase({growth(other), other});
      --open[b];
      for (uint32_t other : others)
        noteGain(other);
    }
    for (uint32_t next : problem.after[node])
      if (--missing[next] == 0)
        makeReady(next);
  }

  const Problem &problem;
  std::vector<uint32_t> keys;
  std::vector<size_t> missing; ///< what it needs that has not run
  std::vector<uint8_t> isReady;
  std::vector<size_t> open; ///< by buffer: users that have not run
  std::set<std::pair<uint32_t, uint32_t>> ready; ///< by key
  std::set<std::pair<int64_t, uint32_t>> gains;  ///< ready ones that free bytes
};

} // namespace

std::vector<uint32_t> lowMemoryOrder(const Problem &problem) {
  return MemoryOrder(problem).run();
}

} // namespace mgpu::planner::search

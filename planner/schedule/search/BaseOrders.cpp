// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/BaseOrders.h"

#include <algorithm>
#include <set>

namespace mgpu::planner::search {

namespace {

/// Runs nodes one at a time and knows what the next one would free.
class MemoryOrder {
public:
  MemoryOrder(const OverlapModel &model, std::vector<double> keys,
              uint64_t comfort)
      : model(model), comfort(comfort), live(model.residentBytes),
        keys(std::move(keys)), missing(model.size()), open(model.size()),
        isReady(model.size(), 0) {}

  std::vector<uint32_t> run() {
    delayProducers();
    for (uint32_t i = 0; i < model.size(); ++i) {
      missing[i] = uint32_t(model.predecessors(i).size());
      open[i] = uint32_t(model.successors(i).size());
    }
    for (uint32_t i = 0; i < model.size(); ++i)
      if (missing[i] == 0)
        makeReady(i);
    std::vector<uint32_t> order;
    order.reserve(model.size());
    while (!ready.empty()) {
      bool tight = live > comfort && !gains.empty();
      uint32_t node = tight ? gains.begin()->second : ready.begin()->second;
      order.push_back(node);
      finish(node);
    }
    return order;
  }

private:
  void delayProducers() {
    for (uint32_t i = model.size(); i-- > 0;) {
      uint64_t in = 0;
      for (uint32_t before : model.predecessors(i))
        in += model.outBytes[before];
      if (model.outBytes[i] < in || model.successors(i).empty())
        continue;
      double need = keys[model.successors(i).front()];
      for (uint32_t next : model.successors(i))
        need = std::min(need, keys[next]);
      keys[i] = std::max(keys[i], need);
    }
  }
  int64_t growth(uint32_t node) const {
    int64_t bytes = int64_t(model.outBytes[node]);
    for (uint32_t before : model.predecessors(node))
      if (open[before] == 1)
        bytes -= int64_t(model.outBytes[before]);
    return bytes;
  }
  void makeReady(uint32_t node) {
    isReady[node] = 1;
    ready.insert({keys[node], node});
    if (int64_t bytes = growth(node); bytes < 0)
      gains.insert({bytes, node});
  }
  void finish(uint32_t node) {
    ready.erase({keys[node], node});
    gains.erase({growth(node), node});
    live += uint64_t(growth(node)); // may shrink: modulo 2^64
    isReady[node] = 0;
    for (uint32_t before : model.predecessors(node)) {
      // The last consumer left would free `before`; its gain is about to grow.
      uint32_t last = UINT32_MAX;
      if (open[before] == 2)
        for (uint32_t other : model.successors(before))
          if (other != node && isReady[other])
            last = other;
      if (last != UINT32_MAX)
        gains.erase({growth(last), last});
      --open[before];
      if (last != UINT32_MAX)
        if (int64_t bytes = growth(last); bytes < 0)
          gains.insert({bytes, last});
    }
    for (uint32_t next : model.successors(node))
      if (--missing[next] == 0)
        makeReady(next);
  }

  const OverlapModel &model;
  uint64_t comfort, live;
  std::vector<double> keys;
  std::vector<uint32_t> missing, open; ///< predecessors, consumers to come
  std::vector<uint8_t> isReady;
  std::set<std::pair<double, uint32_t>> ready;
  std::set<std::pair<int64_t, uint32_t>> gains; ///< of ready, those that free
};

} // namespace

std::vector<uint32_t> lowMemoryOrder(const OverlapModel &model,
                                     const std::vector<double> &keys,
                                     uint64_t comfort) {
  return MemoryOrder(model, keys, comfort).run();
}

std::vector<double> urgency(const OverlapModel &model,
                            const std::vector<uint32_t> &base,
                            const UrgencyRule &rule, double bound) {
  std::vector<double> need(model.size());
  double time = 0;
  for (uint32_t node : base) {
    need[node] = time;
    if (!model.isCollective[node])
      time += model.durations[node];
  }
  if (rule.margin < std::numeric_limits<double>::infinity()) {
    std::vector<double> paths = pathPriorities(model);
    for (uint32_t i = 0; i < model.size(); ++i)
      need[i] = std::min(need[i], bound - paths[i] - rule.margin);
  }
  for (auto it = base.rbegin(); it != base.rend(); ++it) {
    if (!rule.earlier.empty())
      need[*it] -= rule.earlier[*it];
    for (uint32_t next : model.successors(*it)) {
      double lead =
          model.isCollective[next] ? model.durations[next] + rule.lookahead : 0;
      need[*it] = std::min(need[*it], need[next] - lead);
    }
  }
  for (double &value : need)
    value = -value;
  return need;
}

std::vector<double> pathPriorities(const OverlapModel &model) {
  std::vector<double> tails(model.size(), 0);
  for (uint32_t i = model.size(); i-- > 0;) {
    for (uint32_t next : model.successors(i))
      tails[i] = std::max(tails[i], tails[next]);
    tails[i] += model.durations[i];
  }
  return tails;
}

} // namespace mgpu::planner::search

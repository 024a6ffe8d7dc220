// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/GuardedList.h"

#include <algorithm>
#include <limits>

namespace mgpu::planner::search {

// Ready nodes that memory refuses are looked at again at each start; of very
// many only the first are.
static constexpr int maxLooks = 128;

/// The last place in the order at which each node's output is read; the last
/// of all where nothing reads it.
static std::vector<uint32_t> lastPlaces(const OverlapModel &model,
                                        const std::vector<uint32_t> &place) {
  std::vector<uint32_t> last(model.size(), model.size() - 1);
  for (uint32_t i = 0; i < model.size(); ++i) {
    if (model.successors(i).empty())
      continue;
    last[i] = 0;
    for (uint32_t next : model.successors(i))
      last[i] = std::max(last[i], place[next]);
  }
  return last;
}

/// What is live during each step of `order`, run one at a time.
static std::vector<int64_t>
sequentialProfile(const OverlapModel &model,
                  const std::vector<uint32_t> &place) {
  std::vector<int64_t> profile(model.size() + 1, 0);
  std::vector<uint32_t> last = lastPlaces(model, place);
  for (uint32_t i = 0; i < model.size(); ++i) {
    profile[place[i]] += int64_t(model.outBytes[i]);
    profile[last[i] + 1] -= int64_t(model.outBytes[i]);
  }
  int64_t live = int64_t(model.residentBytes);
  for (int64_t &value : profile)
    value = live += value;
  profile.pop_back();
  return profile;
}

static std::vector<uint32_t> placesOf(const std::vector<uint32_t> &order) {
  std::vector<uint32_t> place(order.size());
  for (uint32_t k = 0; k < order.size(); ++k)
    place[order[k]] = k;
  return place;
}

uint64_t sequentialPeak(const OverlapModel &model,
                        const std::vector<uint32_t> &order) {
  std::vector<int64_t> profile = sequentialProfile(model, placesOf(order));
  int64_t peak = int64_t(model.residentBytes);
  for (int64_t value : profile)
    peak = std::max(peak, value);
  return uint64_t(peak);
}

GuardedList::GuardedList(const OverlapModel &model, bool keepsPlaces)
    : model(model), keepsPlaces(keepsPlaces), missing(model.size()),
      consumers(model.size()), openConsumers(model.size()),
      started(model.size()), ended(model.size()) {}

void GuardedList::prepare(const std::vector<uint32_t> &newBase) {
  if (base != newBase) {
    base = newBase;
    place = placesOf(base);
  }
  tree.assign(sequentialProfile(model, place));
  ready[0].clear();
  ready[1].clear();
  std::fill(started.begin(), started.end(), 0);
  std::fill(ended.begin(), ended.end(), 0);
  live = model.residentBytes;
  cursor = 0;
  now = 0;
  for (uint32_t i = 0; i < model.size(); ++i) {
    auto next = model.successors(i);
    consumers[i].assign(next.begin(), next.end());
    std::sort(consumers[i].begin(), consumers[i].end(),
              [&](uint32_t a, uint32_t b) { return place[a] < place[b]; });
    openConsumers[i] = uint32_t(next.size());
    missing[i] = uint32_t(model.predecessors(i).size()) +
                 (keepsPlaces && model.isCollective[i]);
    if (missing[i] == 0)
      ready[model.isCollective[i]].insert({-(*priorities)[i], i});
  }
  gate = 0;
  if (keepsPlaces)
    openGate();
}

/// One thing less that `node` waits for.
void GuardedList::release(uint32_t node) {
  if (--missing[node] == 0)
    ready[model.isCollective[node]].insert({-(*priorities)[node], node});
}

void GuardedList::openGate() {
  for (; gate < model.size() && (model.isCollective[gate] || ended[gate]);
       ++gate)
    if (model.isCollective[gate])
      release(gate);
}

void GuardedList::start(uint32_t node, OverlapSchedule &schedule) {
  live += model.outBytes[node];
  if (cursor < place[node])
    tree.add(cursor, place[node], int64_t(model.outBytes[node]));
  started[node] = 1;
  while (cursor < base.size() && started[base[cursor]])
    ++cursor;
  schedule.starts[node] = now;
  schedule.order.push_back(node);
}

void GuardedList::finish(uint32_t node) {
  ended[node] = 1;
  for (uint32_t input : model.predecessors(node)) {
    std::vector<uint32_t> &open = consumers[input];
    if (--openConsumers[input] == 0)
      live -= model.outBytes[input];
    if (open.back() != node)
      continue;
    uint32_t oldEnd = place[node] + 1, newEnd = 0;
    while (!open.empty() && ended[open.back()])
      open.pop_back();
    if (!open.empty())
      newEnd = place[open.back()] + 1;
    tree.add(std::max(cursor, newEnd), oldEnd, -int64_t(model.outBytes[input]));
  }
  for (uint32_t next : model.successors(node))
    release(next);
  if (keepsPlaces)
    openGate();
}

bool GuardedList::startOne(uint8_t resource, uint64_t limit,
                           OverlapSchedule &schedule) {
  auto admissible = [&](uint32_t node) {
    uint64_t bytes = model.outBytes[node];
    if (live + bytes > limit)
      return false;
    return place[node] <= cursor ||
           tree.max(cursor, place[node]) + int64_t(bytes) <= int64_t(limit);
  };
  auto take = [&](std::set<std::pair<double, uint32_t>>::iterator it) {
    uint32_t node = it->second;
    ready[resource].erase(it);
    start(node, schedule);
    return true;
  };
  int looks = 0;
  for (auto it = ready[resource].begin(); it != ready[resource].end(); ++it) {
    if (++looks > maxLooks)
      break;
    if (admissible(it->second))
      return take(it);
  }
  if (cursor < base.size()) {
    auto it =
        ready[resource].find({-(*priorities)[base[cursor]], base[cursor]});
    if (it != ready[resource].end() && admissible(base[cursor]))
      return take(it);
  }
  return false;
}

bool GuardedList::run(const std::vector<uint32_t> &newBase,
                      const std::vector<double> &newPriorities, uint64_t limit,
                      OverlapSchedule &schedule) {
  priorities = &newPriorities;
  prepare(newBase);
  if (model.size() > 0 &&
      tree.max(0, model.size()) > int64_t(std::min<uint64_t>(limit, INT64_MAX)))
    return false;
  limit = std::min<uint64_t>(limit, INT64_MAX);
  schedule.starts.assign(model.size(), 0);
  schedule.order.clear();
  schedule.order.reserve(model.size());
  schedule.makespan = 0;
  constexpr double never = std::numeric_limits<double>::infinity();
  double until[2] = {never, never};
  uint32_t running[2] = {0, 0};
  while (schedule.order.size() < model.size() || until[0] != never ||
         until[1] != never) {
    // A collective first: it waits for less, and hides behind the kernel.
    for (uint8_t resource : {1, 0})
      if (until[resource] == never && startOne(resource, limit, schedule)) {
        running[resource] = schedule.order.back();
        until[resource] = now + model.durations[running[resource]];
        schedule.makespan = std::max(schedule.makespan, until[resource]);
      }
    // Nothing runs and nothing fits cannot be: base[cursor] then fits.
    if (until[0] == never && until[1] == never)
      return false;
    now = std::min(until[0], until[1]);
    for (uint8_t resource : {1, 0})
      if (until[resource] <= now) {
        until[resource] = never;
        finish(running[resource]);
      }
  }
  return true;
}

} // namespace mgpu::planner::search

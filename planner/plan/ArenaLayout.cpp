// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/plan/ArenaLayout.h"

#include "planner/plan/FreeRanges.h"
#include "planner/plan/Lifetimes.h"
#include "support/Assert.h"

#include <algorithm>
#include <tuple>

namespace mgpu::planner {

double ArenaLayout::worstRatio() const {
  double worst = 1;
  for (size_t device = 0; device < arenaBytes.size(); ++device)
    if (lowerBoundBytes[device] > 0)
      worst = std::max(worst, double(arenaBytes[device]) /
                                  double(lowerBoundBytes[device]));
  return worst;
}

static uint64_t aligned(uint64_t bytes) {
  return (bytes + arenaAlignment - 1) / arenaAlignment * arenaAlignment;
}

namespace {

struct DeviceArena {
  FreeRanges free;
  uint64_t top = 0;
  uint64_t live = 0, peak = 0;
  size_t settledTo = SIZE_MAX; ///< the floor that ranges were joined by
};

class Layouter {
public:
  Layouter(const Plan &plan, const Dag &dag, const Lifetimes &lifetimes,
           Fit fit)
      : plan(plan), dag(dag), fit(fit), clocks(lifetimes.clocks),
        floors(lifetimes.floors), stepsOf(lifetimes.stepsOf),
        exclusive(lifetimes.exclusive), offsets(dag.buffers.size(), 0),
        arenas(dag.numDevices), done(clocks.streamCount()),
        lastUsesOf(dag.buffers.size()) {}

  ArenaLayout run() {
    placeExclusive();
    placeShared();
    ArenaLayout layout;
    for (uint32_t id = 0; id < dag.buffers.size(); ++id)
      if (isInArena(dag.buffers[id]))
        layout.placements.push_back({BufferId{id}, offsets[id]});
    for (const DeviceArena &arena : arenas) {
      layout.arenaBytes.push_back(arena.top);
      layout.lowerBoundBytes.push_back(arena.peak);
      MGPU_ASSERT(arena.peak <= arena.top, "no layout is below its bound");
    }
    for (const Placement &placement : layout.placements) {
      MGPU_ASSERT(placement.offset % arenaAlignment == 0 &&
                      placement.offset +
                              dag.buffer(placement.buffer).sizeBytes <=
                          arenaOf(placement.buffer.value).top,
                  "a buffer lies aligned in its device's arena");
    }
    return layout;
  }

private:
  DeviceArena &arenaOf(uint32_t buffer) {
    return arenas[size_t(dag.buffers[buffer].device.value)];
  }

  void placeExclusive() {
    for (uint32_t id = 0; id < dag.buffers.size(); ++id) {
      if (!isInArena(dag.buffers[id]) || !exclusive[id])
        continue;
      DeviceArena &arena = arenaOf(id);
      offsets[id] = arena.top;
      arena.top += aligned(dag.buffers[id].sizeBytes);
      arena.live = arena.peak = arena.top;
    }
  }

  void placeShared() {
    std::vector<uint32_t> byFirst, byLast;
    for (uint32_t id = 0; id < dag.buffers.size(); ++id)
      if (isInArena(dag.buffers[id]) && !exclusive[id] &&
          dag.buffers[id].sizeBytes > 0)
        byFirst.push_back(id);
    byLast = byFirst;
    // Within a step the larger first: they have the fewest places to go.
    auto firstKey = [&](uint32_t id) {
      return std::tuple(stepsOf[id].front(), ~dag.buffers[id].sizeBytes, id);
    };
    auto lastKey = [&](uint32_t id) {
      return std::pair(stepsOf[id].back(), id);
    };
    std::sort(byFirst.begin(), byFirst.end(),
              [&](auto a, auto b) { return firstKey(a) < firstKey(b); });
    std::sort(byLast.begin(), byLast.end(),
              [&](auto a, auto b) { return lastKey(a) < lastKey(b); });
    size_t retired = 0;
    for (uint32_t id : byFirst) {
      for (; retired < byLast.size() &&
             stepsOf[byLast[retired]].back() < stepsOf[id].front();
           ++retired)
        release(byLast[retired]);
      take(id);
    }
  }

  void release(uint32_t id) {
    DeviceArena &arena = arenaOf(id);
    uint64_t size = aligned(dag.buffers[id].sizeBytes);
    noteLastUses(id);
    arena.free.add({offsets[id], size, id, lastUsesOf[id].front(),
                    lastUsesOf[id].size() == 1});
    arena.live -= size;
  }

  /// Sets `done`: for each stream, how many of its steps are before every use
  /// of the buffer.
  void findDoneBefore(uint32_t id) {
    std::ranges::fill(done, UINT32_MAX);
    for (uint32_t step : stepsOf[id]) {
      std::span<const uint32_t> clock = clocks.of(step);
      for (size_t stream = 0; stream < done.size(); ++stream) {
        // The step itself is not before the step.
        uint32_t count = clock[stream] - (stream == clocks.home(step) ? 1 : 0);
        done[stream] = std::min(done[stream], count);
      }
    }
  }

  /// Per stream in use, the last of the buffer's steps.
  void noteLastUses(uint32_t id) {
    LastUses &last = lastUsesOf[id];
    for (uint32_t step : stepsOf[id]) {
      uint32_t stream = clocks.home(step), count = clocks.count(step);
      auto it = std::find_if(last.begin(), last.end(),
                             [&](auto &use) { return use.stream == stream; });
      if (it == last.end())
        last.push_back({stream, count});
      else
        it->count = std::max(it->count, count);
    }
  }

  void take(uint32_t id) {
    DeviceArena &arena = arenaOf(id);
    const uint64_t size = aligned(dag.buffers[id].sizeBytes);
    const uint32_t first = stepsOf[id].front();
    findDoneBefore(id);
    arena.live += size;
    arena.peak = std::max(arena.peak, arena.live);
    if (arena.settledTo != first / Floors::apart) {
      arena.settledTo = first / Floors::apart;
      arena.free.settle(floors.at(first), lastUsesOf);
    }
    const FreeRanges::Run run =
        arena.free.find(size, done, lastUsesOf, fit, isBrief(id));
    uint64_t begin = run.begin;
    if (!run.isFound) {
      // New bytes, behind the run that ends at the top.
      begin =
          run.end == arena.top && run.end > run.begin ? run.begin : arena.top;
      arena.top = begin + size;
    }
    arena.free.occupy(begin, begin + size);
    offsets[id] = begin;
  }

  /// Whether a buffer is live for few of the plan's steps.
  bool isBrief(uint32_t id) const {
    return stepsOf[id].back() - stepsOf[id].front() < plan.steps.size() / 50;
  }

  const Plan &plan;
  const Dag &dag;
  const Fit fit;
  const StreamClocks &clocks;
  const Floors &floors;
  const Rows<uint32_t> &stepsOf;
  const std::vector<bool> &exclusive;
  std::vector<uint64_t> offsets;
  std::vector<DeviceArena> arenas;
  std::vector<uint32_t> done; ///< by stream, of the buffer that take() places
  std::vector<LastUses> lastUsesOf; ///< last uses of released buffers
};

} // namespace

ArenaLayout layoutArena(const Plan &plan, const Dag &dag, uint64_t enough) {
  const Lifetimes lifetimes(plan, dag);
  ArenaLayout layout = Layouter(plan, dag, lifetimes, Fit::Smallest).run();
  bool isEnough = true;
  for (size_t d = 0; d < layout.arenaBytes.size(); ++d)
    isEnough = isEnough && layout.arenaBytes[d] <=
                               std::max(enough, layout.lowerBoundBytes[d]);
  if (isEnough)
    return layout;
  const ArenaLayout other = Layouter(plan, dag, lifetimes, Fit::Ends).run();
  // Each device has the smaller of its two arenas.
  std::vector<bool> takesOther;
  for (size_t d = 0; d < layout.arenaBytes.size(); ++d) {
    takesOther.push_back(other.arenaBytes[d] < layout.arenaBytes[d]);
    layout.arenaBytes[d] = std::min(layout.arenaBytes[d], other.arenaBytes[d]);
  }
  for (size_t k = 0; k < layout.placements.size(); ++k)
    if (takesOther[size_t(
            dag.buffer(layout.placements[k].buffer).device.value)])
      layout.placements[k] = other.placements[k];
  return layout;
}

} // namespace mgpu::planner

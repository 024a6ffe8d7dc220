// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/plan/ArenaLayout.h"

#include "planner/dag/Rows.h"
#include "planner/plan/StreamClocks.h"
#include "support/Assert.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace mgpu::planner {

// When a plan uses each buffer, and what its order of streams and waits says
// of that.

namespace {

/// By stream: how many of its steps are before all steps from some place of the
/// plan on.
class Floors {
public:
  Floors(const StreamClocks &clocks, size_t steps);

  /// From a place on that is not behind `step`.
  std::span<const uint32_t> at(size_t step) const {
    return {floors.data() + step / apart * streams, streams};
  }

  static constexpr size_t apart = 64; ///< steps of which one has a floor

private:
  size_t streams;
  std::vector<uint32_t> floors;
};

/// The use that a plan makes of each buffer.
struct Lifetimes {
  StreamClocks clocks;
  Floors floors;
  Rows<uint32_t> stepsOf;      ///< per buffer, ascending; once for each use
  std::vector<bool> exclusive; ///< shares its bytes with no other

  Lifetimes(const Plan &plan, const Dag &dag);
};

} // namespace

Floors::Floors(const StreamClocks &clocks, size_t steps)
    : streams(clocks.streamCount()),
      floors((steps / apart + 1) * streams, UINT32_MAX) {
  std::vector<uint32_t> least(streams, UINT32_MAX);
  for (size_t s = steps; s-- > 0;) {
    std::span<const uint32_t> clock = clocks.of(s);
    for (size_t stream = 0; stream < streams; ++stream)
      // The step itself is not before the step.
      least[stream] = std::min(
          least[stream], clock[stream] - (stream == clocks.home(s) ? 1 : 0));
    if (s % apart == 0)
      std::copy(least.begin(), least.end(),
                floors.begin() + long(s / apart * streams));
  }
}

Lifetimes::Lifetimes(const Plan &plan, const Dag &dag)
    : clocks(StreamClocks::of(plan, dag)), floors(clocks, plan.steps.size()),
      exclusive(dag.buffers.size()) {
  for (uint32_t id = 0; id < dag.buffers.size(); ++id)
    exclusive[id] = dag.buffers[id].role != BufferRole::Temporary;
  std::vector<Rows<uint32_t>::Entry> entries;
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    const DagNode &node = dag.node(plan.steps[s].node);
    for (const BufferUse &use : node.uses) {
      entries.emplace_back(use.buffer.value, s);
      if (node.phase != Phase::Replay)
        exclusive[use.buffer.value] = true;
    }
  }
  stepsOf = Rows<uint32_t>(uint32_t(dag.buffers.size()), entries);
  // A buffer nothing uses has no lifetime to reason about.
  for (uint32_t id = 0; id < dag.buffers.size(); ++id)
    if (stepsOf[id].empty())
      exclusive[id] = true;
}

// The bytes of a device's arena that no live buffer holds.

namespace {

/// The last step of a stream that uses a buffer, as the stream's count of them.
struct LastUse {
  uint32_t stream, count;
};

using LastUses = std::vector<LastUse>;

/// Bytes no live buffer holds, and who held them last; nobody where all that is
/// to come follows that. One of the owner's last uses stands here as well, for
/// each find() looks at all ranges, and most owners have no other.
struct FreeRange {
  uint64_t begin, size;
  uint32_t owner;
  LastUse first;
  bool isOnly; ///< the owner has no last use but `first`
  uint64_t end() const { return begin + size; }
};

constexpr uint32_t nobody = UINT32_MAX;

/// Which of the free runs that hold a buffer it takes: the smallest; or the
/// first, but the end of the last if it is brief, so that what comes and goes
/// does not cut up the place of what stays.
enum class Fit : uint8_t { Smallest, Ends };

class FreeRanges {
public:
  /// Adds what a former owner held; its last uses are known from here on.
  void add(const FreeRange &range);
  /// Joins ranges that any buffer may have from now on. `floor` is, by stream,
  /// how many of its steps are before all that is to come.
  void settle(std::span<const uint32_t> floor,
              std::span<const LastUses> lastUsesOf);

  /// A run of adjacent ranges for a buffer of `size` bytes. `done` is, by
  /// stream, how many of its steps are before every use of the buffer. Where
  /// none is found: the last run of all, which may end at the arena's top.
  struct Run {
    bool isFound;
    uint64_t begin, end;
  };
  Run find(uint64_t size, std::span<const uint32_t> done,
           std::span<const LastUses> lastUsesOf, Fit fit, bool isBrief) const;
  /// Takes [begin, end) out.
  void occupy(uint64_t begin, uint64_t end);

private:
  /// The first range that begins at `offset` or behind it.
  std::vector<FreeRange>::iterator rangeFrom(uint64_t offset);

  /// By offset, disjoint. A vector, as each find() looks at all of them.
  std::vector<FreeRange> ranges;
};

} // namespace

/// Whether a buffer may have a range: `done` is as find() has it.
static bool mayFollow(std::span<const uint32_t> done, const FreeRange &range,
                      std::span<const LastUses> lastUsesOf) {
  if (range.owner == nobody)
    return true;
  if (done[range.first.stream] < range.first.count)
    return false;
  return range.isOnly ||
         std::ranges::all_of(lastUsesOf[range.owner], [&](LastUse use) {
           return done[use.stream] >= use.count;
         });
}

std::vector<FreeRange>::iterator FreeRanges::rangeFrom(uint64_t offset) {
  return std::ranges::lower_bound(ranges, offset, {}, &FreeRange::begin);
}

void FreeRanges::add(const FreeRange &range) {
  ranges.insert(rangeFrom(range.begin), range);
}

void FreeRanges::settle(std::span<const uint32_t> floor,
                        std::span<const LastUses> lastUsesOf) {
  size_t kept = 0;
  for (FreeRange range : ranges) {
    if (mayFollow(floor, range, lastUsesOf))
      range.owner = nobody;
    FreeRange *before = kept > 0 ? &ranges[kept - 1] : nullptr;
    if (before && range.owner == nobody && before->owner == nobody &&
        before->end() == range.begin)
      before->size += range.size;
    else
      ranges[kept++] = range;
  }
  ranges.resize(kept);
}

FreeRanges::Run FreeRanges::find(uint64_t size, std::span<const uint32_t> done,
                                 std::span<const LastUses> lastUsesOf, Fit fit,
                                 bool isBrief) const {
  uint64_t best = UINT64_MAX, bestSize = UINT64_MAX;
  uint64_t runBegin = 0, runEnd = 0;
  auto closeRun = [&] {
    const uint64_t runSize = runEnd - runBegin;
    if (runSize < size)
      return;
    if (fit == Fit::Smallest ? runSize < bestSize
                             : isBrief || best == UINT64_MAX)
      best = fit == Fit::Ends && isBrief ? runEnd - size : runBegin;
    bestSize = std::min(bestSize, runSize);
  };
  // No run fits better than one of its own size, or than the first at all.
  auto isFound = [&] {
    return fit == Fit::Smallest ? bestSize == size
                                : best != UINT64_MAX && !isBrief;
  };
  for (const FreeRange &range : ranges) {
    bool usable = mayFollow(done, range, lastUsesOf);
    if (!usable || range.begin != runEnd) {
      closeRun();
      if (isFound())
        break;
      runBegin = runEnd = range.begin;
    }
    runEnd = usable ? range.end() : runBegin;
  }
  if (!isFound())
    closeRun();
  if (best == UINT64_MAX)
    return {false, runBegin, runEnd};
  return {true, best, best + size};
}

void FreeRanges::occupy(uint64_t begin, uint64_t end) {
  auto first = rangeFrom(begin);
  if (first != ranges.begin() && std::prev(first)->end() > begin)
    --first; // it starts in the middle of a range
  auto last = first;
  std::array<FreeRange, 2> left; // at most what is before and what is behind
  size_t lefts = 0;
  for (; last != ranges.end() && last->begin < end; ++last) {
    auto keep = [&](uint64_t from, uint64_t to) {
      left[lefts] = *last;
      left[lefts].begin = from;
      left[lefts++].size = to - from;
    };
    if (last->begin < begin)
      keep(last->begin, begin);
    if (last->end() > end)
      keep(end, last->end());
  }
  ranges.insert(ranges.erase(first, last), left.begin(), left.begin() + lefts);
}

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

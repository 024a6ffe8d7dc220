// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/LowerPeak.h"

#include "planner/schedule/search/MemoryBound.h"
#include "support/Random.h"

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

// Each step takes this share off what is live beside the resident bytes.
static constexpr double stepShare = 0.005;
// So many moves without gain end the search; so many are made at least.
// Sequences longer than mostShortNodes get fewer, in proportion.
static constexpr uint32_t peakPatience = 5000, leastMoves = 2000;
// After so many moves without gain some that lose a little stay, as long as all
// they lost is less than the excess at one place.
static constexpr uint32_t quiet = 100;
// How many places before it a node takes along what only it needs.
static constexpr uint32_t farthestBack = 2000;

namespace {

class PeakLowering {
public:
  PeakLowering(const Problem &problem, uint64_t seed,
               const std::vector<uint32_t> &sequence)
      : problem(problem), memory(problem, sequence), random(seed),
        share(std::min(1.0, double(mostShortNodes) / problem.size())),
        isMoved(problem.size()) {}

  bool run(const std::vector<uint64_t> &limits, const exact::Budget &budget) {
    targets = memory.peaks();
    while (lowerTargets(limits))
      if (!reachTargets(limits, budget)) {
        // The last step went further than it had to.
        for (size_t d = 0; d < targets.size(); ++d)
          targets[d] = std::max(targets[d], limits[d]);
        return reachTargets(limits, budget) && !lowerTargets(limits);
      }
    return true;
  }
  const std::vector<uint32_t> &sequence() const { return memory.order(); }

private:
  /// One step down where a device is above its limit; false where none is.
  bool lowerTargets(const std::vector<uint64_t> &limits) {
    const std::vector<uint64_t> peaks = memory.peaks();
    bool isAbove = false;
    for (size_t d = 0; d < targets.size(); ++d)
      if (peaks[d] > limits[d]) {
        const uint64_t resident = problem.devices[d].residentBytes;
        targets[d] = resident +
                     uint64_t(double(targets[d] - resident) * (1 - stepShare));
        isAbove = true;
      }
    return isAbove;
  }

  /// Moves until the targets are met, or the limits.
  bool reachTargets(const std::vector<uint64_t> &limits,
                    const exact::Budget &budget) {
    lost = 0;
    for (idle = 0; findPlace(limits); ++moves) {
      if (++idle > share * peakPatience ||
          (moves > share * leastMoves && budget.isOutOfTime()))
        return false;
      if ((lost += move()) < 0) {
        lost = 0;
        idle = 0;
      }
    }
    return true;
  }

  /// A place where a device is above its target: the worst, or any. False where
  /// there is none, or where all are within the limits.
  bool findPlace(const std::vector<uint64_t> &limits) {
    int64_t worst = 0;
    uint32_t seen = 0;
    bool isAbove = false;
    const bool takesAny = random.below(2);
    for (uint32_t d = 0; d < targets.size(); ++d)
      for (uint32_t k = 0; k < problem.size(); ++k) {
        const int64_t live = memory.live(d, k),
                      over = live - int64_t(targets[d]);
        isAbove = isAbove || uint64_t(live) > limits[d];
        if (over > 0 && (takesAny ? random.below(++seen) == 0 : over > worst)) {
          worst = over;
          peak = k;
          device = d;
        }
      }
    worstExcess = double(worst);
    return worst > 0 && isAbove;
  }

  /// One that is live at the peak and that a move can take away from there:
  /// each in proportion to its bytes.
  bool pickBuffer(uint32_t &picked) {
    uint64_t sum = 0;
    for (uint32_t b = 0; b < problem.buffers.size(); ++b) {
      const ProblemBuffer &buffer = problem.buffers[b];
      if (buffer.device != device || buffer.bytes == 0 ||
          memory.place(memory.firstUser(b)) >= peak ||
          memory.place(memory.lastUser(b)) <= peak)
        continue;
      sum += buffer.bytes;
      if (random.below(sum) < buffer.bytes)
        picked = b;
    }
    return sum > 0;
  }

  /// Takes something off the peak, if that loses nothing: what it changes the
  /// excess by, 0 where nothing did.
  double move() {
    uint32_t buffer = 0, begin = 0;
    // One move in eight is a shift, the others are delays and pulls.
    const uint64_t kind = random.below(8);
    if (kind == 0             ? !shift(begin)
        : !pickBuffer(buffer) ? true
        : kind % 2 == 1       ? !delay(buffer, begin)
                              : !pull(buffer, begin))
      return 0;
    const double change = memory.reorder(begin, part, targets);
    const bool mayLose = idle > quiet && random.below(16) == 0;
    if (change > (mayLose ? worstExcess - lost : 0)) {
      memory.undo();
      return 0;
    }
    return change;
  }

  /// Moves the node that makes `buffer` behind the peak.
  bool delay(uint32_t buffer, uint32_t &begin) {
    const uint32_t maker = memory.firstUser(buffer);
    uint32_t next = problem.size();
    for (uint32_t user : problem.users[buffer])
      if (user != maker)
        next = std::min(next, memory.place(user));
    if (next == problem.size())
      return false;
    // Behind the peak, before its next use where that is later.
    const uint32_t end = next <= peak + 1
                             ? peak + 1
                             : peak + 1 + uint32_t(random.below(next - peak));
    begin = memory.place(maker);
    std::vector<uint32_t> moved{maker};
    isMoved[maker] = true;
    if (random.below(2))
      begin = takeMakersAlong(begin, moved);
    const std::vector<uint32_t> &order = memory.order();
    for (uint32_t k = memory.place(maker) + 1; k < end; ++k)
      if (dependsOnMoved(order[k])) {
        moved.push_back(order[k]);
        isMoved[order[k]] = true;
      }
    collect(begin, end, false);
    for (uint32_t node : moved)
      isMoved[node] = false;
    return true;
  }
  bool dependsOnMoved(uint32_t node) const {
    for (uint32_t needed : problem.before[node])
      if (isMoved[needed])
        return true;
    return false;
  }
  /// Nodes that only moved nodes need move with them; returns their first
  /// place.
  uint32_t takeMakersAlong(uint32_t from, std::vector<uint32_t> &moved) {
    uint32_t first = from;
    const uint32_t stop = from > farthestBack ? from - farthestBack : 0;
    for (uint32_t k = from; k-- > stop;) {
      const uint32_t node = memory.order()[k];
      std::span<const uint32_t> users = problem.after[node];
      if (!users.empty() &&
          std::all_of(users.begin(), users.end(),
                      [&](uint32_t user) { return isMoved[user]; })) {
        moved.push_back(node);
        isMoved[node] = true;
        first = k;
      }
    }
    return first;
  }

  /// Moves the users of `buffer` that come after the peak before it, with all
  /// that they need.
  bool pull(uint32_t buffer, uint32_t &begin) {
    uint32_t end = 0;
    std::vector<uint32_t> moved;
    for (uint32_t user : problem.users[buffer])
      if (memory.place(user) > peak) {
        end = std::max(end, memory.place(user) + 1);
        moved.push_back(user);
        isMoved[user] = true;
      }
    begin = peak;
    const std::vector<uint32_t> &order = memory.order();
    for (uint32_t k = end; k-- > peak;)
      if (isMoved[order[k]])
        for (uint32_t needed : problem.before[order[k]])
          if (memory.place(needed) >= peak && !isMoved[needed]) {
            moved.push_back(needed);
            isMoved[needed] = true;
          }
    collect(begin, end, true);
    for (uint32_t node : moved)
      isMoved[node] = false;
    return true;
  }

  /// Moves a node near the peak to any place that its edges allow there.
  bool shift(uint32_t &begin) {
    const std::vector<uint32_t> &order = memory.order();
    const uint32_t most = uint32_t(
        std::min<uint64_t>(problem.size(), uint64_t(2) << random.below(10)));
    const uint32_t low = peak > most ? peak - most : 0,
                   high = std::min(peak + most, problem.size() - 1);
    const uint32_t node = order[low + random.below(high - low + 1)];
    uint32_t first = low, last = high;
    for (uint32_t before : problem.before[node])
      first = std::max(first, memory.place(before) + 1);
    for (uint32_t after : problem.after[node])
      last = std::min(last, memory.place(after) - 1);
    if (first >= last)
      return false;
    const uint32_t from = memory.place(node),
                   to = first + uint32_t(random.below(last - first + 1));
    begin = std::min(from, to);
    isMoved[node] = true;
    collect(begin, std::max(from, to) + 1, to < from);
    isMoved[node] = false;
    return true;
  }

  /// The places [begin, end) with the moved nodes first, or last.
  void collect(uint32_t begin, uint32_t end, bool movedFirst) {
    part.clear();
    for (bool isFirst : {true, false})
      for (uint32_t k = begin; k < end; ++k)
        if (uint32_t node = memory.order()[k];
            (isMoved[node] == movedFirst) == isFirst)
          part.push_back(node);
  }

  const Problem &problem;
  SequenceMemory memory;
  Random random;
  const double share; ///< of the moves of a short sequence
  uint32_t moves = 0, idle = 0;
  double worstExcess = 0;        ///< bytes above a target at one place
  double lost = 0;               ///< excess above the least so far
  std::vector<uint64_t> targets; ///< bytes by device
  uint32_t peak = 0, device = 0; ///< what the next move is about
  std::vector<bool> isMoved;     ///< by node, within one move
  std::vector<uint32_t> part;    ///< the new order of the places of a move
};

} // namespace

bool lowerPeak(const Problem &problem, const std::vector<uint64_t> &limits,
               uint64_t seed, const exact::Budget &budget,
               std::vector<uint32_t> &sequence) {
  PeakLowering lowering(problem, seed, sequence);
  const bool fits = lowering.run(limits, budget);
  sequence = lowering.sequence();
  return fits;
}

} // namespace mgpu::planner::search

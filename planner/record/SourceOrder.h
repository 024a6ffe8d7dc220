// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_RECORD_SOURCEORDER_H
#define MGPU_PLANNER_RECORD_SOURCEORDER_H

// The order the program itself promises: in-order queues (chains), waits and
// host syncs, kept as vector clocks. Used only to judge the program; the plan
// is made from data dependencies.

#include "support/Types.h"

#include <algorithm>
#include <vector>

namespace mgpu::planner {

/// A point on a chain: the `sequence`-th item of it, counted from 1.
struct SourcePoint {
  uint32_t chain = 0;
  uint32_t sequence = 0;
};

/// clock[c] = how many items of chain c are known to be complete.
class VectorClock {
public:
  uint32_t operator[](uint32_t chain) const {
    return chain < counts.size() ? counts[chain] : 0;
  }
  void raise(SourcePoint point) {
    if (counts.size() <= point.chain)
      counts.resize(point.chain + 1, 0);
    counts[point.chain] = std::max(counts[point.chain], point.sequence);
  }
  void join(const VectorClock &other) {
    if (counts.size() < other.counts.size())
      counts.resize(other.counts.size(), 0);
    for (size_t k = 0; k < other.counts.size(); ++k)
      counts[k] = std::max(counts[k], other.counts[k]);
  }
  bool covers(SourcePoint point) const {
    return (*this)[point.chain] >= point.sequence;
  }

private:
  std::vector<uint32_t> counts;
};

class SourceOrder {
public:
  /// Chain 0 is the host; chain 1 + d is device d's default queue.
  explicit SourceOrder(uint32_t numDevices);

  uint32_t createChain(DeviceId device);
  uint32_t defaultChain(DeviceId device) const {
    return device.isHost() ? 0 : 1 + uint32_t(device.value);
  }

  /// The clock for which an item put on `chain` now would wait.
  VectorClock clockAt(uint32_t chain) const;
  /// Puts an item on the chain; later items of the chain follow it.
  SourcePoint enqueue(uint32_t chain);
  /// The clock that must have been reached before an item put on `chain` now
  /// can run, if every send waits for its receiver. More than `clockAt`: a send
  /// may end before its receiver starts, so it orders nothing, yet it may
  /// block.
  VectorClock reachAt(uint32_t chain) const;
  /// Later items of `chain` also follow everything `clock` covers.
  void joinInto(uint32_t chain, const VectorClock &clock) {
    chains[chain].clock.join(clock);
  }
  void joinReachInto(uint32_t chain, const VectorClock &reach) {
    chains[chain].reach.join(reach);
  }
  /// It turns out that `point`, already on its chain, follows everything
  /// `clock` covers; so do all that follow it.
  void learn(SourcePoint point, const VectorClock &clock);
  void learnReach(SourcePoint point, const VectorClock &reach);
  /// Later items of `chain` follow all items of `other` so far.
  void waitFor(uint32_t chain, uint32_t other) {
    joinInto(chain, clockAt(other));
    joinReachInto(chain, reachAt(other));
  }
  /// The host, and so every later item, waits for all items of `chain` so far.
  void hostWaitsFor(uint32_t chain) { waitFor(0, chain); }
  /// Whether the host has waited for all items of the chain.
  bool isDrained(uint32_t chain) const {
    return chains[0].clock.covers({chain, chains[chain].length});
  }
  const VectorClock &hostClock() const { return chains[0].clock; }
  DeviceId deviceOf(uint32_t chain) const { return chains[chain].device; }
  uint32_t numChains() const { return uint32_t(chains.size()); }

private:
  struct Chain {
    DeviceId device;
    uint32_t length = 0;
    VectorClock clock, reach;
  };
  std::vector<Chain> chains;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_RECORD_SOURCEORDER_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/record/SourceOrder.h"

namespace mgpu::planner {

SourceOrder::SourceOrder(uint32_t numDevices) {
  chains.push_back({DeviceId::host(), 0, {}, {}});
  for (uint32_t d = 0; d < numDevices; ++d)
    createChain({int32_t(d)});
}

uint32_t SourceOrder::createChain(DeviceId device) {
  chains.push_back({device, 0, {}, {}});
  return uint32_t(chains.size() - 1);
}

VectorClock SourceOrder::clockAt(uint32_t chain) const {
  VectorClock clock = chains[0].clock;
  if (chain != 0)
    clock.join(chains[chain].clock);
  return clock;
}

VectorClock SourceOrder::reachAt(uint32_t chain) const {
  VectorClock reach = chains[0].reach;
  if (chain != 0)
    reach.join(chains[chain].reach);
  return reach;
}

SourcePoint SourceOrder::enqueue(uint32_t chain) {
  Chain &target = chains[chain];
  // Everything that the host had waited for when it issued the item comes
  // before it.
  if (chain != 0) {
    target.clock.join(chains[0].clock);
    target.reach.join(chains[0].reach);
  }
  SourcePoint point{chain, ++target.length};
  target.clock.raise(point);
  target.reach.raise(point);
  return point;
}

void SourceOrder::learn(SourcePoint point, const VectorClock &clock) {
  for (Chain &chain : chains)
    if (chain.clock.covers(point))
      chain.clock.join(clock);
}

void SourceOrder::learnReach(SourcePoint point, const VectorClock &reach) {
  for (Chain &chain : chains)
    if (chain.reach.covers(point))
      chain.reach.join(reach);
}

} // namespace mgpu::planner

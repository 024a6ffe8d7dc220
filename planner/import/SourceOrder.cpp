// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/SourceOrder.h"

namespace mgpu::planner {

SourceOrder::SourceOrder(uint32_t numDevices) {
  chains.push_back({DeviceId::host(), 0, {}});
  for (uint32_t d = 0; d < numDevices; ++d)
    createChain({int32_t(d)});
}

uint32_t SourceOrder::createChain(DeviceId device) {
  chains.push_back({device, 0, {}});
  return uint32_t(chains.size() - 1);
}

VectorClock SourceOrder::clockAt(uint32_t chain) const {
  VectorClock clock = chains[0].clock;
  if (chain != 0)
    clock.join(chains[chain].clock);
  return clock;
}

SourcePoint SourceOrder::enqueue(uint32_t chain) {
  Chain &target = chains[chain];
  // What the host had waited for when it issued the item comes before it.
  if (chain != 0)
    target.clock.join(chains[0].clock);
  SourcePoint point{chain, ++target.length};
  target.clock.raise(point);
  return point;
}

void SourceOrder::hostWaitsFor(DeviceId device) {
  for (uint32_t c = 1; c < chains.size(); ++c)
    if (chains[c].device == device)
      hostWaitsFor(c);
}

} // namespace mgpu::planner

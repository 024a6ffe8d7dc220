// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/ranks/CardMemory.h"

#include "capture/replay/Replayer.h"

#include <fmt/format.h>

namespace mgpu::capture {

static constexpr uint64_t controlBytes =
    (sizeof(SharedControl) + 4095) / 4096 * 4096;

Result<CardMemory> CardMemory::make(const planner::Dag &dag) {
  if (dag.numDevices > SharedControl::maxRanks)
    return fail(ErrorKind::Unsupported,
                fmt::format("{} cards, more than {}", dag.numDevices,
                            SharedControl::maxRanks));
  const HostLayout layout = hostLayout(dag);
  CardMemory out;
  MGPU_TRY_ASSIGN(out.memory, SharedMemory::make(controlBytes + layout.bytes));
  MGPU_TRY(writeConstants(dag, layout, out.host()));
  for (size_t k = 0; k < dag.buffers.size(); ++k)
    out.buffers.push_back(
        dag.buffers[k].device.isHost()
            ? out.host().subspan(layout.offsets[k],
                                 size_t(dag.buffers[k].sizeBytes))
            : std::span<std::byte>());
  return out;
}

std::span<std::byte> CardMemory::host() const {
  return memory.bytes().subspan(controlBytes);
}

} // namespace mgpu::capture

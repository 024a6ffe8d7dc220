// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/space/Occupancy.h"

#include <algorithm>

namespace mgpu::kernels {

// These are cuda_occupancy.h's of CUDA 13.0, for compute capability 7.5 and
// later.
static constexpr uint32_t warpSize = 32;
static constexpr uint32_t partitions = 4;     // of a multiprocessor
static constexpr uint32_t registerUnit = 256; // of a warp
/// The unit, in bytes, in which a block gets shared memory.
uint32_t sharedUnitOf(const device::DeviceProfile &device) {
  return device.architecture < 80 ? 256 : 128;
}

static uint32_t roundUp(uint32_t value, uint32_t unit) {
  return (value + unit - 1) / unit * unit;
}

Result<Occupancy> occupancyOf(const EntryUsage &entry, uint32_t threads,
                              uint32_t dynamicSharedBytes,
                              const device::DeviceProfile &device) {
  auto refused = [&](const char *what, uint64_t asked, uint64_t most) {
    return fail(ErrorKind::Invalid, entry.name + " cannot be launched on " +
                                        std::string(device.name) + ": " +
                                        std::to_string(asked) + " " + what +
                                        " of " + std::to_string(most));
  };
  if (threads == 0 || threads > device.maxThreadsPerBlock)
    return refused("threads per block", threads, device.maxThreadsPerBlock);
  uint64_t shared = uint64_t(entry.sharedBytes) + dynamicSharedBytes;
  if (shared > device.maxSharedBytesPerBlock)
    return refused("bytes of shared memory", shared,
                   device.maxSharedBytesPerBlock);
  if (entry.registers > device.maxRegistersPerThread)
    return refused("registers per thread", entry.registers,
                   device.maxRegistersPerThread);
  uint32_t warps = (threads + warpSize - 1) / warpSize;
  Occupancy result;
  result.blocksPerMultiprocessor = device.maxBlocksPerMultiprocessor;
  result.limit = "blocks";
  auto limit = [&](uint32_t blocks, const char *name) {
    if (blocks >= result.blocksPerMultiprocessor)
      return;
    result.blocksPerMultiprocessor = blocks;
    result.limit = name;
  };
  uint32_t maxWarps = device.maxThreadsPerMultiprocessor / warpSize;
  limit(maxWarps / warps, "threads");
  if (entry.registers > 0) {
    uint32_t perWarp = roundUp(entry.registers * warpSize, registerUnit);
    uint32_t fitting =
        device.registersPerMultiprocessor / partitions / perWarp * partitions;
    if (roundUp(warps, partitions) * perWarp >
        device.registersPerMultiprocessor)
      return refused("registers per block",
                     roundUp(warps, partitions) * perWarp,
                     device.registersPerMultiprocessor);
    limit(fitting / warps, "registers");
  }
  uint32_t perBlock =
      roundUp(uint32_t(shared) + device.reservedSharedBytesPerBlock,
              sharedUnitOf(device));
  if (perBlock > 0)
    limit(device.sharedBytesPerMultiprocessor / perBlock, "shared memory");
  result.fraction =
      double(result.blocksPerMultiprocessor * warps) / double(maxWarps);
  return result;
}

} // namespace mgpu::kernels

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_SPACE_OCCUPANCY_H
#define MGPU_KERNELS_SPACE_OCCUPANCY_H

#include "device/api/DeviceProfile.h"
#include "kernels/abi/CompiledKernel.h"
#include "support/Result.h"

namespace mgpu::kernels {

struct Occupancy {
  uint32_t blocksPerMultiprocessor = 0;
  double fraction = 0;    ///< share of the warps a multiprocessor can hold
  const char *limit = ""; ///< what allows no more: "threads", "registers", ...
};

/// Bytes in units of which a block is given shared memory.
uint32_t sharedUnitOf(const device::DeviceProfile &device);

/// How many blocks of `threads` threads run on a multiprocessor at a time, by
/// the rules of cuda_occupancy.h of CUDA 13.0 (registers are given to warps in
/// units of 256 and belong to one of four partitions; shared memory to blocks
/// in units of 128 or 256 bytes, with the driver's share). Invalid, naming the
/// limit, for a launch the device refuses.
Result<Occupancy> occupancyOf(const EntryUsage &entry, uint32_t threads,
                              uint32_t dynamicSharedBytes,
                              const device::DeviceProfile &device);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_SPACE_OCCUPANCY_H

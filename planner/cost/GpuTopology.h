// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_COST_GPUTOPOLOGY_H
#define MGPU_PLANNER_COST_GPUTOPOLOGY_H

// The machine of a GPU that is here, by what its driver says of it.

#include "device/api/Topology.h"

namespace mgpu::planner {

/// The highest clock, which the driver states; not that of now.
struct GpuFacts {
  std::string name;          ///< "NVIDIA H100 80GB HBM3"
  uint32_t architecture = 0; ///< 90: compute capability 9.0
  uint64_t memoryBytes = 0;
  uint32_t multiprocessors = 0, clockKhz = 0, memoryClockKhz = 0;
  uint32_t busBits = 0; ///< width of the memory's bus
};

/// `devices` devices of such a GPU, each with all of its rates and a part of
/// its memory. A GPU of a machine built in, by its name and its
/// multiprocessors, has the published rates. The rates of another are scaled:
/// memory is the bus's bytes at both edges of its clock, FP32 two operations
/// for each lane and clock, and tensor cores keep the ratio to FP32 that the
/// built-in GPU of the nearest older architecture has; links are of that
/// machine. Absent where the driver reports what no GPU has.
Result<device::Topology> topologyOfGpu(const GpuFacts &gpu, uint32_t devices,
                                       uint32_t devicesOnGpu = 1);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_COST_GPUTOPOLOGY_H

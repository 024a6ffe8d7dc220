// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_BENCH_SUITES_CUDA_BANDWIDTH_H
#define MGPU_BENCH_SUITES_CUDA_BANDWIDTH_H

// Elementwise kernels in the shapes of their spaces, beside the GPU's own
// copy.

#include "bench/suites/cuda/BareGpu.h"

#include "device/api/GraphDriver.h"

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace mgpu::bench {

struct BandwidthOptions {
  std::string bundle;  ///< a program with the kernels' CUDA C++
  double seconds = 20; ///< for all; of what is left out there is a count
};

/// One object for each kernel, given to `report`: its bytes over those that the
/// copy moves in the same time, as the source has it and at best, and by shape.
/// Both count what is read and what is written.
Result<void>
measureBandwidth(BareGpu &gpu, device::Driver &driver,
                 const BandwidthOptions &options,
                 const std::function<void(const nlohmann::json &)> &report);

} // namespace mgpu::bench

#endif // MGPU_BENCH_SUITES_CUDA_BANDWIDTH_H

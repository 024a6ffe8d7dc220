// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_BENCH_SUITES_CUDA_STEPPROGRAM_H
#define MGPU_BENCH_SUITES_CUDA_STEPPROGRAM_H

// Programs whose kernels do next to nothing, so that what is measured is what
// launching costs: planned and replayed as any program is, and the same nodes
// by the driver's own calls.

#include "bench/suites/cuda/BareGpu.h"

#include "capture/replay/Replayer.h"

#include <string>

namespace mgpu::bench {

/// "chain": each node after the one before; "layers": of eight, each node after
/// its neighbour to the right and the one above it.
struct StepShape {
  std::string kind;
  uint32_t nodes = 0;
};

/// A kernel of one thread: *out = max(*a, *b) + 1. It takes whatever emitted
/// kernels take beside their arguments.
std::string stepSource();

/// `driver` must outlive it; `cubin` is that of stepSource().
class StepProgram {
public:
  static Result<StepProgram> make(const StepShape &shape,
                                  std::span<const std::byte> cubin,
                                  device::Driver &driver);

  Result<void> replay() { return replayer.replay(); }
  /// By the GPU's clock.
  Result<double> replaySpan();
  /// Invalid where the last replay did not leave what all nodes in order leave.
  Result<void> checkResult();

  /// The launches on other memory, and the edges of the graph that the plan
  /// became.
  std::vector<BareLaunch> launches;
  std::vector<std::pair<uint32_t, uint32_t>> edges;

private:
  explicit StepProgram(capture::Replayer replayer)
      : replayer(std::move(replayer)) {}

  capture::Replayer replayer;
  planner::BufferId result;
  uint32_t expected = 0;
};

} // namespace mgpu::bench

#endif // MGPU_BENCH_SUITES_CUDA_STEPPROGRAM_H

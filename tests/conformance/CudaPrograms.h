// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_CONFORMANCE_CUDAPROGRAMS_H
#define MGPU_TESTS_CONFORMANCE_CUDAPROGRAMS_H

// Whole programs on the CUDA target over the driver that is not there
// (tests/unit/cuda): their kernels' CUDA C++, compiled for the processor.

#include "tests/conformance/Execute.h"
#include "tests/unit/cuda/FakeCuda.h"
#include "tests/unit/kernels/CudaTwin.h"

#include <chrono>
#include <functional>
#include <memory>
#include <random>

namespace mgpu::conformance {

class CudaPrograms {
public:
  /// All matrix products by a cuBLASLt that is not there.
  bool useCublasLt = false;
  /// Kernels begin before those they follow have ended, and wait for them; set
  /// before the first add().
  void beginEarly() {
    twins.onAwait = [] { fake::FakeCuda::instance().awaitGrids(); };
  }
  /// They do not wait: for a test of the driver that is not there.
  void leaveOutWaits() { twins.leavesOutWaits = true; }
  /// With ranks: arenas are windows of NCCL's.
  bool useWindows = false;
  /// Emits the kernels of a program, each in a launch shape that `random`
  /// chooses, and says by which number its objects are asked for.
  Result<size_t> add(const planner::Dag &dag, std::mt19937_64 &random);
  /// Compiles all that was added.
  Result<void> compile() {
    twins.runsLong = true;
    return twins.compile();
  }
  /// A fresh driver of `numDevices` devices, where nodes run in the order
  /// `seed` makes of them.
  Result<std::unique_ptr<device::Driver>> open(uint32_t numDevices,
                                               uint64_t seed) const;
  /// The same of one rank, in a process of its own.
  Result<std::unique_ptr<device::Driver>>
  openRank(uint32_t rank, uint64_t seed, std::function<Result<void>()> watch,
           std::chrono::milliseconds deadline = std::chrono::seconds(20)) const;
  /// A machine for ranks that are threads, with a GPU each.
  void readyThreads(uint32_t gpus, uint64_t seed) const;
  /// One of them, in its thread, for device `first` + `rank`.
  Result<std::unique_ptr<device::Driver>>
  openThread(uint32_t rank, std::function<Result<void>()> watch,
             uint32_t first = 0) const;
  /// What was chosen for the kernel added as number `kernel`.
  std::string configOf(size_t kernel) const {
    return kernels::toText(twins.configs[kernel].config);
  }
  const std::vector<std::vector<std::byte>> &objects(size_t program) const {
    return programs[program];
  }
  /// By kernel, what a call needs (planner::addWorkspaces).
  const std::vector<uint64_t> &workspaces(size_t program) const {
    return workspaceBytes[program];
  }

private:
  void registerKernels(uint64_t seed) const;

  kernels::CudaTwins twins;
  std::vector<std::vector<std::vector<std::byte>>> programs;
  std::vector<std::vector<uint64_t>> workspaceBytes;
};

} // namespace mgpu::conformance

#endif // MGPU_TESTS_CONFORMANCE_CUDAPROGRAMS_H

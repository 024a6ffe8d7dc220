// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_BUILD_KERNELLISTING_H
#define MGPU_PIPELINE_BUILD_KERNELLISTING_H

// The kernels of a program as CUDA texts, each with the candidates for its
// place, its legal configurations, and what the compiler says of it.

#include "device/api/BlobCache.h"
#include "device/api/DeviceProfile.h"
#include "kernels/compile/CompileTexts.h"
#include "kernels/compile/CudaConfig.h"
#include "pipeline/program/LoadedProgram.h"
#include "planner/cost/TargetMachine.h"

#include <optional>
#include <string>
#include <vector>

namespace mgpu::pipeline {

// Predicts the times of configurations of kernels on a GPU that need not be
// here.

/// Microseconds of the largest launch of a kernel, one for each configuration
/// of `text`'s space; empty where the kernel is not launched or has no facts.
std::vector<double>
predictConfigs(const LoadedProgram &program, const planner::Machine &machine,
               uint32_t kernel, const kernels::CudaText &text,
               std::span<const kernels::KernelConfig> configs);

/// The default of a kernel and the configuration predicted to be the fastest.
struct PredictedKernel {
  double defaultUs = 0, bestUs = 0;
  kernels::KernelConfig best;
};
/// Among those legal on `gpu`, or on any where it is null; none where
/// predictConfigs() is empty.
std::optional<PredictedKernel> predictKernel(const LoadedProgram &program,
                                             const planner::Machine &machine,
                                             uint32_t kernel,
                                             const kernels::CudaText &text,
                                             const device::DeviceProfile *gpu);

/// The legal configurations of a kernel, and what is not and why.
struct Survey {
  uint64_t legal = 0;
  std::vector<kernels::KernelRefusal> refused;
};

/// A text, as it is listed.
struct Listed {
  const kernels::CudaText *text = nullptr;
  std::string disabled;       ///< why it is not used, on this architecture
  bool isUsed = false;        ///< or that it is, in its kernel's place
  size_t kernel = 0;          ///< by KernelId
  std::optional<Error> error; ///< why it is not emitted, or not compiled
  std::optional<Survey> space;
  const kernels::EntryUsage *usage = nullptr; ///< null if it is not compiled
  std::optional<PredictedKernel> predicted;   ///< where there is a machine
  uint32_t spill = 0, shared = 0;
  std::optional<double> occupancy;
};

/// The kernels of a program and the candidates for their places.
struct KernelListing {
  const LoadedProgram &program;
  const std::string &arch;
  const device::DeviceProfile *gpu; ///< null: an architecture without limits
  std::vector<kernels::CudaText> texts = {}; ///< by KernelId
  std::vector<Listed> all = {}; ///< each kernel's text, then its candidates
  /// The configurations that are compiled, as indices of `all`, and what came
  /// of it.
  std::vector<size_t> compiled = {};
  std::vector<Result<kernels::CompiledText>> results = {};

  void list(const std::vector<Result<kernels::CudaText>> &emitted);
  /// Leaves out what the GPU cannot launch.
  void checkLaunches();
  /// Predicts the times of launches on a machine.
  void predict(const planner::Machine &machine);
  Result<void> compile(device::BlobCache *cache, uint64_t seconds);

private:
  void add(size_t kernel, const kernels::CudaText &text,
           const Result<kernels::CudaText> &emitted);
};

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_BUILD_KERNELLISTING_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_COMPILER_KERNELBUILD_H
#define MGPU_PIPELINE_COMPILER_KERNELBUILD_H

// From a DAG's kernel to what a tuner wants of it: the variants of it, and
// the object of one of them. No MLIR in this interface. Each function makes a
// context of its own, so calls may run at the same time.

#include "kernels/space/KernelSpace.h"
#include "planner/dag/Dag.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace mgpu::kernels {

/// The configurations of `spec` on `target` for launches of up to `maxGrid`
/// blocks of the source. Internal where the source does not parse.
Result<KernelSpace> kernelSpaceOf(const planner::KernelSpec &spec, Dim3 maxGrid,
                                  KernelTarget target);

/// Compiles `spec` for the host target as it is launched in the source, for
/// `cpu` as HostEmitOptions has it. Errors name the launch.
Result<std::vector<std::byte>>
compileHostKernel(const planner::KernelSpec &spec, const std::string &cpu);

/// The key of what compileHostKernel() makes, or, of a configuration,
/// buildHostKernel(): equal keys have equal objects. None where a part of what
/// decides it is not known.
std::optional<std::string> hostKernelKey(const planner::KernelSpec &spec,
                                         const std::string &cpu,
                                         const KernelConfig *config = nullptr);

struct HostBuild {
  std::vector<std::byte> object; ///< as Driver::loadKernel takes it
  /// The grid of the object for a call whose grid is `maxGrid`. The object
  /// finds it by itself from the source's grid, so KernelCall::grid stays as it
  /// is.
  Dim3 launchGrid;
};

/// Compiles `spec` for the host target, for `cpu` as HostEmitOptions has it;
/// `space` is its kernelSpaceOf there. Invalid for a configuration that is not
/// legal. Errors name the launch.
Result<HostBuild> buildHostKernel(const planner::KernelSpec &spec,
                                  const KernelSpace &space,
                                  const KernelConfig &config,
                                  const std::string &cpu = "native");

/// Compiles `spec` for this machine as a kernel that computes in f64 and bounds
/// its errors (ErrorBounds.h): it takes one argument more. Unsupported, naming
/// the operation, where there is no rule for one.
Result<std::vector<std::byte>>
buildErrorKernel(const planner::KernelSpec &spec);

/// Says what kept a kernel from being compiled, in one sentence that begins
/// with the operation's place where there is one, else with the launch's.
tl::unexpected<Error> failOf(const planner::KernelSpec &spec, Error error);

} // namespace mgpu::kernels

#endif // MGPU_PIPELINE_COMPILER_KERNELBUILD_H

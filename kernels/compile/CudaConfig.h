// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_COMPILE_CUDACONFIG_H
#define MGPU_KERNELS_COMPILE_CUDACONFIG_H

// A configuration of a kernel, as the emitted CUDA C++ takes it.

#include "device/api/DeviceProfile.h"
#include "kernels/space/KernelSpace.h"
#include "planner/dag/Dag.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mgpu::kernels {

struct CudaText;

/// {"MGPU_BLOCK_X", "128"}, ...: as BatchItem::macros, or each as an option
/// "-DNAME=VALUE".
std::vector<std::pair<std::string, std::string>>
macrosOf(const KernelSpace &space, const KernelConfig &config);

/// The macros of the tunables alone.
std::vector<std::pair<std::string, std::string>>
tunableMacros(const KernelSpace &space, const KernelConfig &config);

/// `space` on a device: its rules, and the device's limits of blocks, shared
/// memory and blocks per multiprocessor, as far as they are known before ptxas
/// has chosen registers (then occupancyOf says the rest). They bind the
/// defaults too.
KernelSpace onDevice(KernelSpace space, const device::DeviceProfile &device);

/// Makes the algorithms of a library, which computes what `space` is of by
/// default, points of it: a tunable, whose 1 is the library's first choice and
/// 0 the kernel's own text, and which is 0 where any other axis has not its
/// default.
void addLibraryChoices(KernelSpace &space);
/// The value of that tunable; nothing where there is none.
std::optional<uint32_t> libraryPlace(const KernelSpace &space,
                                     const KernelConfig &config);

/// The work that the largest launch of a kernel asks of a GPU in configurations
/// of `text`'s space, one answer for each; none where a library computes the
/// product, or where the kernel has no facts.
std::vector<std::optional<planner::LaunchWork>>
launchWorkOf(const planner::KernelSpec &kernel, const CudaText &text,
             std::span<const KernelConfig> configs);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_COMPILE_CUDACONFIG_H

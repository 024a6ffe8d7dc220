// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_CARDTUNING_H
#define MGPU_TOOLS_MGPU_TUNE_CARDTUNING_H

// What the tuner needs of one NVIDIA card.

#include "device/api/BlobCache.h"
#include "tools/mgpu-tune/Tuned.h"

namespace mgpu::tune {

/// What card of the target there is, asked of the driver in a process of its
/// own: this one is to be forked, which CUDA does not survive. With `inHere`,
/// where this process uses CUDA already, in this one. Errors: Usage for another
/// form, Absent without a driver or the card.
Result<tuner::TargetIdentity> identifyCard(const std::string &target,
                                           bool inHere);

/// A kernel built in one way for an architecture, as Driver::loadKernel of the
/// CUDA target takes it; with `awaits`, as --pdl has it. `cache` may be null.
/// Errors: those of NVRTC; Unsupported for a text without a space.
Result<std::vector<std::byte>>
buildCardKernel(kernels::CudaText text, const planner::KernelConfig &config,
                const std::string &arch, bool awaits, device::BlobCache *cache);

/// What a card lets be chosen: whether kernels begin before those they follow
/// have ended ("pdl", off or on).
tuner::TargetSetting pdlSetting(const std::string &arch);
/// Whether a configuration has it on.
bool usesPdl(const std::map<std::string, std::string> &settings);

} // namespace mgpu::tune

#endif // MGPU_TOOLS_MGPU_TUNE_CARDTUNING_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_COMPILE_COMPILETEXTS_H
#define MGPU_KERNELS_COMPILE_COMPILETEXTS_H

// CUDA C++ of a program's kernels to cubins and kernel objects.

#include "device/api/BlobCache.h"
#include "kernels/abi/CubinElf.h"
#include "kernels/compile/CudaText.h"
#include "kernels/compile/NvrtcCompiler.h"

#include <memory>

namespace mgpu::kernels {

/// The compiled program of a kernel, which small kernels share, and the
/// kernel's own figures.
struct CompiledText {
  std::shared_ptr<const CompiledKernel> program;
  const EntryUsage *usage = nullptr; ///< in `program`
};

/// Whether small kernels share a program, which is compiled sooner.
enum class Programs { Shared, OneEach };

/// Compiles each text in its default configuration, and gives why it does not
/// compile. Absent without NVRTC. Warnings go to stderr. `cache` may be null.
Result<std::vector<Result<CompiledText>>>
compileTexts(const std::vector<CudaText> &texts, const std::string &arch,
             device::BlobCache *cache, const CompileLimits &limits,
             Programs programs = Programs::Shared);

/// Builds a kernel in one way for an architecture, as Driver::loadKernel of the
/// CUDA target takes it. With `awaits` it waits for the kernel that it follows.
/// `cache` may be null. Errors: those of NVRTC; Unsupported for a text without
/// a space.
Result<std::vector<std::byte>>
buildGpuKernel(CudaText text, const KernelConfig &, const std::string &arch,
               bool awaits, device::BlobCache *cache);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_COMPILE_COMPILETEXTS_H

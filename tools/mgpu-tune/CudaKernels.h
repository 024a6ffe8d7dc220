// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_CUDAKERNELS_H
#define MGPU_TOOLS_MGPU_TUNE_CUDAKERNELS_H

// CUDA C++ of a program's kernels to cubins.

#include "device/api/BlobCache.h"
#include "kernels/compile/CubinElf.h"
#include "kernels/compile/CudaObjects.h"
#include "kernels/compile/NvrtcCompiler.h"
#include "tools/mgpu-tune/OwnKernels.h"
#include "tools/mgpu-tune/Program.h"

#include <memory>

namespace mgpu::tune {

/// A kernel's program, which small kernels share, and its own figures.
struct CompiledText {
  std::shared_ptr<const kernels::CompiledKernel> program;
  const kernels::EntryUsage *usage = nullptr; ///< in `program`
};

/// Whether the program, whose cubin is `cubin`, has the kernel's entry, with
/// its parameters: Invalid for what a user wrote, Internal for what was
/// emitted.
Result<void> checkEntry(const kernels::CudaText &text,
                        const kernels::CompiledKernel &program,
                        const kernels::Cubin &cubin);

/// Unsupported where --pdl is given and cards of `arch` have no such thing.
Result<void> checkPdl(bool isAsked, const std::string &arch);

/// Each text, in their order, or why it does not compile; Absent without NVRTC.
/// Warnings go to stderr. `cache` may be null.
Result<std::vector<Result<CompiledText>>>
compileTexts(const std::vector<kernels::CudaText> &texts,
             const std::string &arch, device::BlobCache *cache,
             const kernels::CompileLimits &limits);

/// An error of the compiler's, which knows the text alone, with the place of
/// the kernel in the program.
Error errorAt(const std::string &location, Error error);

/// Of --compile-timeout.
kernels::CompileLimits compileLimits(uint64_t seconds);

/// The cubins of the program's bundle, where they are for `arch`, else
/// compiled.
Result<kernels::CudaObjects> cudaKernels(const Program &program,
                                         const std::string &arch,
                                         device::BlobCache *cache);

/// ownCompiler() of the target's own kernels, with those of the bundle.
Result<device::CudaCompile> ownCompilerOf(const Program &program,
                                          const std::string &database);

/// What cuBLASLt needs of each device's memory at most. 0 where it computes
/// nothing, or the kernels cannot be written for cards.
uint64_t productWorkspace(const Program &program, uint32_t streamsPerDevice);

} // namespace mgpu::tune

#endif // MGPU_TOOLS_MGPU_TUNE_CUDAKERNELS_H

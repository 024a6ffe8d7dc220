// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_BUILD_KERNELS_H
#define MGPU_PIPELINE_BUILD_KERNELS_H

// The build step: the kernels of a program as it stands, for the host or for
// GPUs. A bundle has them; those of other programs are compiled.

#include "capture/replay/Bundle.h"
#include "db/SqliteBlobCache.h"
#include "device/api/BlobCache.h"
#include "device/cuda/CudaDriver.h"
#include "kernels/compile/CompileTexts.h"
#include "pipeline/program/LoadedProgram.h"

#include <set>

namespace mgpu::pipeline {

/// The database as a cache of cubins between runs; `database` is as LoadOptions
/// has it. Null, with a warning, where it cannot be opened: nothing is lost but
/// time.
std::unique_ptr<db::SqliteBlobCache>
openCubinCache(const std::string &database);

/// The host's kernels by KernelId, compiled on all cores. `cpu` is a level
/// ("x86-64-v3"). Empty, it is the best level of a bundle that this processor
/// runs, else this processor itself.
struct HostKernels {
  std::string cpu; ///< the level chosen, or "native"
  std::vector<std::vector<std::byte>> objects;
};
Result<HostKernels> hostKernels(const LoadedProgram &program,
                                const std::string &cpu);

/// Every kernel as CUDA C++, in the order of the DAG, or an error that names
/// the operation that cannot be emitted. `cache` keeps them, and may be null.
Result<std::vector<Result<kernels::CudaText>>>
eachCudaText(const LoadedProgram &program, device::BlobCache *cache);
/// The texts, where none fails.
Result<std::vector<kernels::CudaText>> cudaTexts(const LoadedProgram &program,
                                                 device::BlobCache *cache);

/// Unsupported where the variant `pdl` is asked for and GPUs of `arch` cannot
/// do it.
Result<void> checkPdl(bool isAsked, const std::string &arch);

/// Adds the kernel's place in the program to an error of NVRTC, which knows the
/// text alone.
Error errorAt(const std::string &location, Error error);

/// `seconds` is the time limit of each program; 0 is none.
kernels::CompileLimits compileLimits(uint64_t seconds);

/// The cubin (or PTX) that came with the kernel for `arch`, if one did. Absent
/// where the kernel has others and no text to compile.
Result<std::optional<std::vector<std::byte>>>
givenCubin(const planner::KernelSpec &kernel, const kernels::CudaText &text,
           const std::string &arch);

/// Kernels for GPUs of `arch`: those of the program's bundle where it has them
/// for `arch`, else compiled; as kernels::cudaObjects().
Result<std::vector<std::vector<std::byte>>>
cudaKernels(const LoadedProgram &program, const std::string &arch,
            device::BlobCache *cache);

/// ownCompiler() with the target's own kernels that the bundle has.
Result<device::CudaCompile> ownCompilerOf(const LoadedProgram &program);

/// The most that cuBLASLt needs of each device's memory. 0 where it computes
/// nothing, or where the kernels cannot be written for GPUs.
uint64_t productWorkspace(const LoadedProgram &program,
                          uint32_t streamsPerDevice);

// The kernels of the CUDA target's own (device/cuda/api/DeviceKernels.h):
// compiled once for a database, and once for a bundle.

/// The texts of the programs that `dag` may need: of copies, and of the
/// reductions of its collectives.
std::set<std::string> ownPrograms(const planner::Dag &dag);

/// All of them, for a bundle. `cache` may be null.
Result<capture::OwnCubins> compileOwn(const planner::Dag &dag,
                                      std::span<const std::string> archs,
                                      device::BlobCache *cache);

/// A CudaOptions::compile: what is given, else what NVRTC makes, which is kept
/// in `database` ("": the user's; none: nowhere). Nothing is open between
/// calls, so that it may be called in a process that was forked since.
device::CudaCompile ownCompiler(std::optional<std::string> database,
                                capture::OwnCubins given = {});

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_BUILD_KERNELS_H

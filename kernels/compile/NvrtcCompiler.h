// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_COMPILE_NVRTCCOMPILER_H
#define MGPU_KERNELS_COMPILE_NVRTCCOMPILER_H

// CUDA C++ text to cubins: one program at a time or many on all cores, with a
// cache in front. Needs no GPU and no driver.

#include "device/api/BlobCache.h"
#include "kernels/abi/CompiledKernel.h"
#include "kernels/compile/NvrtcLibrary.h"

#include <atomic>
#include <chrono>
#include <span>
#include <string_view>

namespace mgpu::kernels {

/// The entry functions named in a log made with `-Xptxas -v`, in its order.
/// The format is that of CUDA 12 and 13: "ptxas info    : Compiling entry
/// function 'k' for 'sm_90'", then the lines about it. Unknown lines are
/// skipped.
std::vector<EntryUsage> parsePtxasLog(std::string_view log);

/// Whether the compiler warned.
bool hasWarning(std::string_view log);

/// A header-free program and how to compile it.
struct CompileJob {
  std::string source;
  std::string name; ///< what messages call it, where #line says nothing else
  std::vector<std::string> options; ///< "-DMGPU_ITEMS=4", "--fmad=false"
  std::string arch;                 ///< "sm_90", "sm_90a"
};

struct CompileLimits {
  /// How long each program may take; zero is no limit. NVRTC looks up only
  /// between its phases, some of which take long: after `grace` more it is left
  /// to itself, in a thread of its own (hasLeftPrograms()).
  std::chrono::milliseconds timeout{0};
  std::chrono::milliseconds grace{2000};
  /// Set by another thread: programs not yet compiled fail.
  const std::atomic<bool> *cancel = nullptr;
  /// Compiling at the same time; 0 is one for each core.
  unsigned threads = 0;
};

/// From now on every program is compiled in a process of its own, which is
/// forked for it. NVRTC opens libcuda and calls cuInit(), and a process that
/// is forked after that has no CUDA: a command that forks what uses GPUs must
/// not compile itself. Call it where there are no other threads.
void compileInProcesses();

/// Whether NVRTC still compiles a program that was given up: the process must
/// then end by _Exit(), because NVRTC's own end does not wait for it.
bool hasLeftPrograms();

class NvrtcCompiler {
public:
  /// Opens NVRTC (NvrtcLibrary::open). `cache`, which may be null, must outlive
  /// the compiler.
  static Result<NvrtcCompiler> open(device::BlobCache *cache = nullptr,
                                    const std::string &path = "");

  /// Errors: Usage for an architecture NVRTC does not know, Invalid with the
  /// compiler's first message for a program that does not compile, Absent for
  /// one stopped by a limit. Thread-safe.
  Result<CompiledKernel> compile(const CompileJob &job,
                                 const CompileLimits &limits = {}) const;

  /// Compiles each job, all of them whatever becomes of the others.
  std::vector<Result<CompiledKernel>>
  compileAll(std::span<const CompileJob> jobs,
             const CompileLimits &limits = {}) const;

  /// "13.0"
  std::string version() const;
  /// The path of the library that was opened.
  const std::string &path() const { return library->path; }
  const std::vector<int> &architectures() const {
    return library->architectures;
  }
  /// The key of `job` in the cache: SHA-256 of its source, name (which the log
  /// and line tables contain), options, architecture, the NVRTC version, and
  /// NVRTC_APPEND_FLAGS, which NVRTC reads from the environment.
  std::string cacheKey(const CompileJob &job) const;

private:
  NvrtcCompiler(std::shared_ptr<const NvrtcLibrary> library,
                device::BlobCache *cache)
      : library(std::move(library)), cache(cache) {}

  Result<void> checkArchitecture(const CompileJob &job) const;

  std::shared_ptr<const NvrtcLibrary> library; ///< a thread left has it, too
  device::BlobCache *cache;
};

/// One program for one architecture, with --fmad=false: as the host computes.
/// Opens NVRTC for it; `cache` as above. It is the function for
/// device::CudaOptions::compile.
Result<std::vector<std::byte>> compileCubin(const std::string &source,
                                            const std::string &name,
                                            const std::string &arch,
                                            device::BlobCache *cache = nullptr);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_COMPILE_NVRTCCOMPILER_H

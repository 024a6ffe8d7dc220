// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_KERNELS_CORNERCHECK_H
#define MGPU_TESTS_UNIT_KERNELS_CORNERCHECK_H

// Kernels in the corners of their spaces, compiled for GPUs. A test takes some
// corners of each kernel at random, others for each architecture; with
// MGPU_CORNERS=all in the environment (make check-all) it takes them all.

#include "kernels/abi/CubinElf.h"
#include "kernels/compile/NvrtcCompiler.h"
#include "tests/unit/kernels/CudaTwin.h"

namespace mgpu::kernels {

/// MGPU_CORNERS=all
bool takesAllCorners();

class CornerCheck {
public:
  /// Takes `perArch` corners of the kernel for each of the architectures and
  /// its defaults for every third, or all for all. Where a function has a fast
  /// form, that too, for every third or of the defaults.
  void
  add(const CudaKernel &kernel, const KernelSpace &space, size_t perArch = 1,
      const std::vector<std::string> &archs = {"sm_80", "sm_90", "sm_100"});

  /// Takes each `every`-th point that is legal on the architecture's GPU, or
  /// all for all. In none of them may a register be spilled.
  void addPoints(const CudaKernel &kernel, const KernelSpace &space,
                 size_t every, const std::string &arch);

  /// Compiles all, as the service does: many in one program. Expects of each
  /// that NVRTC warns of nothing but of `accepted`, numbers apart by commas,
  /// that ptxas leaves wgmma in flight, and that the cubin has the entry under
  /// its name and no other, with the parameters where the launch puts them, and
  /// the registers and shared memory that ptxas says, no more than a launch of
  /// the configuration has; and no spilled register under the defaults. Prints
  /// how many there were.
  void run(const NvrtcCompiler &compiler, const std::string &accepted = "");

private:
  struct Variant {
    size_t kernel;
    std::string entry;
    KernelConfig config;
    bool fastMath;
    bool staysInRegisters;
  };
  struct Kernel {
    CudaKernel text;
    KernelSpace space;
  };
  BatchItem itemOf(const Variant &variant) const;
  void check(const CompiledKernel &program, const std::string &arch,
             std::span<const Variant> variants) const;
  void checkOne(const Variant &variant, const EntryUsage &usage,
                const CubinEntry &inFile, const std::string &arch) const;

  std::vector<Kernel> kernels;
  std::map<std::string, std::vector<Variant>> byArch;
};

} // namespace mgpu::kernels

#endif // MGPU_TESTS_UNIT_KERNELS_CORNERCHECK_H

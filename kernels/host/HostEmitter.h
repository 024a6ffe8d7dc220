// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_HOST_HOSTEMITTER_H
#define MGPU_KERNELS_HOST_HOSTEMITTER_H

// Compiles a kernel to native code with the exact semantics of a GPU: the
// threads of a block become the innermost loop, split at barriers.

#include "kernels/space/KernelSpace.h"
#include "support/Result.h"
#include "support/Types.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace mgpu::kernels {

struct HostEmitOptions {
  /// "native", or an x86-64 level: "x86-64-v2", "x86-64-v3", "x86-64-v4".
  std::string cpu = "native";
  /// A legal one of the kernel's space (KernelBuild.h); none: the block of the
  /// source, and the rest as the emitter chooses. A matrix product has its own
  /// form (PackedProduct.h) where the configuration is the space's default;
  /// others are those of its threads as loops.
  std::optional<KernelConfig> config = {};
  /// Makes a kernel of the source's launch shape that bounds its errors, with a
  /// seed behind its own arguments (ErrorBounds.h).
  bool boundsErrors = false;
};

/// `kernel` holds one func.func @entry whose arguments are memrefs with static
/// layout and scalars, whose body uses gpu.thread_id, block_id, ..., and whose
/// launch has `block` threads per block. Other functions of the module are
/// device functions it may call. Returns a shared object exporting
/// hostKernelEntryName (kernels/abi/HostKernelAbi.h). `kernel` is consumed.
/// Errors: Unsupported, with the operation's place, for what the host target
/// lacks; Invalid where the program is wrong.
Result<std::vector<std::byte>>
emitHostKernel(mlir::ModuleOp kernel, Dim3 block,
               const HostEmitOptions &options = {});

/// Refuses what emitHostKernel() would refuse, without making code of it.
Result<void> verifyHostKernel(mlir::ModuleOp kernel, Dim3 block);

/// Names what decides the code beside the kernel and this program: the
/// processor that `cpu` means here, and the linker.
Result<std::string> hostTargetId(const std::string &cpu);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_HOST_HOSTEMITTER_H

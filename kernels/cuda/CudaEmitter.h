// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_CUDAEMITTER_H
#define MGPU_KERNELS_CUDA_CUDAEMITTER_H

// Writes a kernel as readable CUDA C++ that includes nothing: NVRTC compiles it
// without the toolkit's headers. It is made of the module the host emitter
// takes (kernels/host/HostEmitter.h), so the two are twins.

#include "kernels/abi/KernelImage.h"

#include <optional>
#include <string>
#include <vector>

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace mgpu::kernels {

struct CudaEmitOptions {
  std::string name;     ///< the entry's; an identifier of C
  std::string location; ///< the launch's, for the comment at the top
  Dim3 block;           ///< the launch's threads per block
  /// No launch has a larger grid. Decides what fits 32-bit indices.
  Dim3 maxGrid{2147483647, 65535, 65535};
  /// Facts that hold for the arguments of every launch
  /// (planner/dag/LaunchFacts.h): the bytes that each buffer's address is a
  /// multiple of, the buffers of which no launch writes what it reads, and how
  /// much of each nothing writes in a replay.
  uint32_t alignment = 1;
  std::vector<bool> unwritten{};
  std::vector<uint64_t> steadyBytes{};
};

struct CudaParameter {
  std::string name, type; ///< as in the text: "x0", "const float *"
  /// No store of a launch changes what is read through it: __restrict__, but
  /// not where the launch may begin before the one that writes it has ended.
  bool isUnwritten = false;
};

/// A kernel's text as an image, and what was decided when it was written. The
/// image's `block` and `covers` follow from the macros the text is compiled
/// with: a block covers MGPU_BLOCK_X * MGPU_ITEMS * MGPU_VECTOR threads of the
/// source along x if the kernel is reshapable, else MGPU_ITEMS of its blocks.
/// The last parameter is an MgpuLaunch: twelve uint32_t, the grid G, the first
/// block of this chunk, and the part of the grid that runs: its first block of
/// the source and one past its last. The blocks of a part are counted as those
/// of a grid of its size.
struct CudaKernel {
  std::string name;
  KernelImage image;
  std::vector<CudaParameter> parameters; ///< without the MgpuLaunch
  bool reshapable = false; ///< any block and items per thread that cover it
  std::string reason;      ///< why, or why not
  /// Why MGPU_VECTOR is 1; empty where it may be any divisor of block.x.
  std::string vectorReason;
  bool hasUnroll = false; ///< MGPU_UNROLL changes something
  /// Blocks of a cluster, of which MGPU_ITEMS and MGPU_CLUSTER_X are 1 then.
  std::optional<Dim3> cluster;
};

/// A name for the entry of a kernel that is called `name`: an identifier, and
/// another one for each other name.
std::string entryNameOf(const std::string &name);

/// `kernel` holds func.func @entry as emitHostKernel takes it, and is consumed.
/// Errors: Unsupported, with the operation's place, for what cannot be emitted;
/// Invalid where the program is wrong.
Result<CudaKernel> emitCudaKernel(mlir::ModuleOp kernel,
                                  const CudaEmitOptions &options);

/// Names the code that emits: the build ids of what it is linked into and of
/// MLIR's and LLVM's libraries. Two processes of one id emit the same text of
/// the same kernel. Empty where one of them has no build id.
std::string emitterId();

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_CUDA_CUDAEMITTER_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_CUDAEMITTER_H
#define MGPU_KERNELS_CUDA_CUDAEMITTER_H

// Writes a kernel as readable CUDA C++ that includes nothing: NVRTC compiles it
// without the toolkit's headers. It is made of the module the host emitter
// takes (kernels/host/HostEmitter.h), so the two are twins.

#include "kernels/abi/TensorMap.h"
#include "support/Result.h"

#include <string>
#include <vector>

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace mgpu::kernels {

struct CudaEmitOptions {
  std::string name;     ///< the entry's; an identifier of C
  std::string location; ///< of the launch, for the comment at the top
  Dim3 block;           ///< the launch's threads per block
  /// No launch has a larger grid. Decides what fits 32-bit indices.
  Dim3 maxGrid{2147483647, 65535, 65535};
};

struct CudaParameter {
  std::string name, type; ///< as in the text: "x0", "const float *"
};

/// The text, and what a launcher must know of it. A launch of G blocks of the
/// source runs ceil(G.x * block.x / (MGPU_BLOCK_X * MGPU_ITEMS * MGPU_VECTOR))
/// blocks if the kernel is reshapable, else ceil(G.x / MGPU_ITEMS), and along y
/// and z as if MGPU_ITEMS were 1. The last parameter is an MgpuLaunch: twelve
/// uint32_t, the grid G, the first block of this chunk, and the part of the
/// grid that runs: its first block of the source and one past its last. Of a
/// part, the blocks are counted as of a grid of its size.
struct CudaKernel {
  std::string name, source;
  std::string entry; ///< of the function; `name`, unless the kernel is a file
  /// Whether it takes an MgpuLaunch. A kernel that was written by hand takes
  /// its parameters alone and is launched whole.
  bool takesPart = true;
  Dim3 block;
  std::vector<CudaParameter> parameters; ///< without the MgpuLaunch
  bool reshapable = false; ///< any block and items per thread that cover it
  std::string reason;      ///< why, or why not
  /// Why MGPU_VECTOR is 1; empty where it may be any divisor of block.x.
  std::string vectorReason;
  bool hasUnroll = false;               ///< MGPU_UNROLL says something
  std::vector<uint32_t> parameterBytes; ///< by `parameters`
  uint32_t dynamicSharedBytes = 0;
  /// Parameters that are tensor maps of the arrays whose addresses the launch
  /// gives.
  std::vector<TensorMap> tensorMaps;
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

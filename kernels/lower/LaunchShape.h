// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_LOWER_LAUNCHSHAPE_H
#define MGPU_KERNELS_LOWER_LAUNCHSHAPE_H

#include "support/Types.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>

namespace mgpu::kernels {

/// Which launch shapes are equivalent to the source's.
struct LaunchShape {
  bool reshapable = false;
  std::string reason;
  bool usesShared = false; ///< static or dynamic, or that of a reduction
  /// Workgroup memory the source asks for, static and dynamic.
  uint32_t sharedBytes = 0;
  /// Where results or output may depend on the order in which threads run, as
  /// with atomic additions of floats: "uses memref.atomic_rmw (line 5)".
  std::string ordered;
  bool awaitsOthers = false;     ///< blocks may wait for each other
  bool hasLoops = false;         ///< any loop
  bool hasCountedLoops = false;  ///< scf.for or affine.for
  bool hasCarryingLoops = false; ///< a counted one that hands values on
  /// Blocks of a cluster along x, y and z, where the source's launch has some.
  std::optional<Dim3> cluster;
};

/// "uses gpu.barrier (line 5)"
std::string describeUse(mlir::Operation *op);

/// Threads of `block` along `dim`.
inline uint64_t sizeAlong(Dim3 block, mlir::gpu::Dimension dim) {
  return dim == mlir::gpu::Dimension::x   ? block.x
         : dim == mlir::gpu::Dimension::y ? block.y
                                          : block.z;
}

/// The axis along which `sum` is block id * block size + thread id, in index
/// or in the low bits of it, if it is.
std::optional<mlir::gpu::Dimension> globalIndexOf(mlir::Operation *sum,
                                                  Dim3 block);

/// A kernel whose threads never meet may run with any block, and several items
/// per thread: its ids follow from the global index. One with barriers, shared
/// memory or subgroup operations keeps its block.
LaunchShape launchShapeOf(mlir::ModuleOp module, Dim3 block);

/// The bytes of an alloca in workgroup memory; 0 for other allocas.
int64_t workgroupBytes(mlir::memref::AllocaOp alloca);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_LOWER_LAUNCHSHAPE_H

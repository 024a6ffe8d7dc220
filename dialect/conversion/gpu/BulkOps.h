// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_GPU_BULKOPS_H
#define MGPU_DIALECT_CONVERSION_GPU_BULKOPS_H

// Expands what kernels for sm_90 do with tensor maps, barriers in memory and
// groups of four subgroups to loops and barriers of the block, for every
// target.

#include "dialect/mgpu/MgpuDialect.h"

#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/IR/Builders.h"

namespace mgpu::conversion {

/// Names memory spaces of a kernel that are NVIDIA's numbers 3 and 5 as the gpu
/// dialect does.
void nameMemorySpaces(mlir::Operation *kernel);

/// Globals in workgroup memory become memory of the launch's blocks; those
/// without a size begin where dynamic workgroup memory does.
void placeWorkgroupGlobals(ir::LaunchOp launch);

/// Writes what the operations of nvgpu on mbarriers, tensor maps and warpgroups
/// mean, and those of nvvm on warpgroups, behind those that are instructions
/// (dialect/mgpu/Instructions.h), else in their place. A copy is done when it
/// is asked for; what waits for one is a barrier of the block, so it must stand
/// where all threads come. Fails, after a diagnostic that names it, at an
/// operation that has no such form.
mlir::LogicalResult expandBulkOps(ir::LaunchOp launch);

/// How many bytes of a row are swizzled together; 0: none.
int64_t swizzleSpan(mlir::nvgpu::TensorMapSwizzleKind kind);

/// Where in its row of workgroup memory a tensor copy puts an element of so
/// many bytes; rows are as long as the swizzle's span, if there is one.
mlir::Value swizzled(mlir::OpBuilder &b, mlir::Value column, mlir::Value row,
                     int64_t bytes, mlir::nvgpu::TensorMapSwizzleKind kind);

/// A part of a tensor that is copied at once.
struct TensorBox {
  mlir::Value tensor; ///< of the rank of the box
  llvm::SmallVector<int64_t> sizes;
  mlir::nvgpu::TensorMapDescriptorType map;
};

/// The array and box that a tensor map describes, for `op`. Fails, after a
/// diagnostic there, where the text does not show it or it has no form here.
mlir::FailureOr<TensorBox> tensorBoxOf(mlir::Operation *op,
                                       mlir::Value descriptor);

/// Copies a box behind `op`, element by element, by the thread that asks for
/// it. It is marked as the meaning of a load, which is an instruction.
mlir::LogicalResult copyBox(mlir::Operation *op, const TensorBox &box,
                            mlir::ValueRange coordinates, mlir::Value memory,
                            mlir::Value predicate, bool isStore);

/// A matrix that a warpgroup multiplies: its memory, and how tensor copies laid
/// it there.
struct WarpgroupMatrix {
  mlir::Value memory = {};
  mlir::nvgpu::TensorMapDescriptorType map = {};
};

/// The type of each thread's part of accumulators, a vector: elements as
/// wgmma's fragments have them, 64 rows after 64 rows.
mlir::VectorType
accumulatorType(mlir::nvgpu::WarpgroupAccumulatorType accumulator);

/// Whether a product has a form: f16 or bf16 in f32, A by rows and B
/// transposed, of rows of 128 bytes that are swizzled.
bool hasForm(mlir::nvgpu::WarpgroupMmaOp op, const WarpgroupMatrix &a,
             const WarpgroupMatrix &b);

/// The sums with the products added, each thread its own, in order of k.
mlir::Value warpgroupProduct(mlir::OpBuilder &b, mlir::nvgpu::WarpgroupMmaOp op,
                             const WarpgroupMatrix &left,
                             const WarpgroupMatrix &right, mlir::Value sums);

/// Each thread stores its own, and waits for the others.
void warpgroupStore(mlir::OpBuilder &b, mlir::nvgpu::WarpgroupMmaStoreOp op);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_GPU_BULKOPS_H

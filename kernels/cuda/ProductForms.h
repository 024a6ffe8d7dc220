// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_PRODUCTFORMS_H
#define MGPU_KERNELS_CUDA_PRODUCTFORMS_H

// The forms that a matrix product has on a GPU: tiles, tensor cores by warps or
// by warpgroups, and a library.

#include "kernels/abi/MatrixProduct.h"
#include "kernels/cuda/CudaEmitter.h"
#include "kernels/space/KernelSpace.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>

namespace mgpu::kernels {

// Matmul.cpp: tiles in shared memory, several elements to a
// thread. The meaning of such a kernel is its body, a thread for each element
// of C that adds A * B in order of k (dialect/conversion/linalg); the text adds
// in that order too, so the bits are those of the body.

/// Whether `kernel` is one that emitMatmul has a text for: a product of f32 or
/// f64 (productOf()).
bool isMatmul(mlir::ModuleOp kernel);

/// The text of one. A block of MGPU_BLOCK_X x MGPU_BLOCK_Y threads computes
/// MGPU_TILE_X elements along n and MGPU_TILE_Y along m with each, and stages
/// MGPU_DEPTH steps of k at a time.
Result<CudaKernel> emitMatmul(mlir::ModuleOp kernel,
                              const CudaEmitOptions &options);

/// Its blocks, tiles and depths.
KernelSpace matmulSpace(mlir::ModuleOp kernel, Dim3 block, Dim3 maxGrid);

// TensorMatmul.cpp, Matmul.cpp: products of f16 and bf16 on tensor
// cores (mma.sync), their tiles
// brought to shared memory by copies that run ahead (cp.async). Sums are in
// f32, from what C held, rounded once where C is narrower. A GPU may add the
// 16 products of one instruction in an order of its own, and the body of such a
// kernel rounds each sum of a narrow C: so the bits may differ from the body's,
// unless all sums are exact.

/// Why there is no such text for the kernel; empty where there is one. "-" for
/// a kernel that is not a matrix product of two f16 or bf16 matrices.
std::string tensorMatmulRefusal(mlir::ModuleOp kernel);

/// The text. A block of MGPU_BLOCK_Y warps (MGPU_BLOCK_X is 32) computes
/// 32 MGPU_TILE_X columns and MGPU_BLOCK_Y MGPU_TILE_Y rows; MGPU_WARPS_Y of
/// its warps lie one above the other, the others side by side; MGPU_STAGES
/// tiles of MGPU_DEPTH steps of k are in shared memory.
Result<CudaKernel> emitTensorMatmul(mlir::ModuleOp kernel,
                                    const CudaEmitOptions &options);

KernelSpace tensorMatmulSpace(mlir::ModuleOp kernel, Dim3 block, Dim3 maxGrid);

// WgmmaMatmul.cpp, Matmul.cpp: products of f16 and bf16 for sm_90a: a
// warp brings boxes of A and B to shared memory by tensor copies (TMA), stage
// after stage, and warpgroups multiply them there (wgmma). Sums are in f32,
// from what C held, rounded once where C is narrower; the bits may differ from
// the body's as TensorMatmul's may.

/// Why there is no such text for the kernel; empty where there is one. "-" for
/// a kernel that is not a matrix product of two f16 or bf16 matrices.
std::string wgmmaMatmulRefusal(mlir::ModuleOp kernel);

/// The text. A block has MGPU_BLOCK_Y warps (MGPU_BLOCK_X is 32). The last one
/// loads and the others multiply, four to a warpgroup; the block computes 32
/// MGPU_TILE_X columns and (MGPU_BLOCK_Y - 1) MGPU_TILE_Y rows. MGPU_STAGES
/// tiles of MGPU_DEPTH steps of k are in dynamic shared memory; the space says
/// how much that is. A and B are tensor maps, CudaKernel::tensorMaps, the same
/// ones for every configuration.
Result<CudaKernel> emitWgmmaMatmul(mlir::ModuleOp kernel,
                                   const CudaEmitOptions &options);

KernelSpace wgmmaMatmulSpace(mlir::ModuleOp kernel, Dim3 block, Dim3 maxGrid);

// LibraryMatmul.cpp: what a library (cuBLASLt) can compute in a kernel's place.
// It adds in an order of its own: the bits are the body's only where all sums
// are exact.

/// The type of numbers that CUDA's libraries multiply; none where it is not
/// f16, bf16, f32 or f64.
std::optional<ElementType> libraryType(mlir::Type type);

/// Why the library is not asked; empty where it may be. "-" for a kernel that
/// is not a matrix product of f16, bf16, f32 or f64.
std::string libraryMatmulRefusal(mlir::ModuleOp kernel);

/// The product to ask it for.
MatrixProduct libraryMatmul(mlir::ModuleOp kernel);

// The forms that an attention has on a GPU: softmax(score(Q K^T)) V in one
// launch. A warp has a few queries, and a block's warps go through the keys
// together, which come to shared memory tile after tile. The softmax is
// corrected from tile to tile. The bits depend on the program and the form
// alone (docs/numerics.md).

/// Whether `kernel` is one that emitAttention has a text for: an attention
/// (attentionForm()) whose values have at most 256 elements.
bool isAttention(mlir::ModuleOp kernel);

/// The text: products by threads, each of a key or an element of a value. A
/// block has MGPU_BLOCK_Y warps (MGPU_BLOCK_X is 32) of MGPU_TILE_Y queries.
Result<CudaKernel> emitAttention(mlir::ModuleOp kernel,
                                 const CudaEmitOptions &options);
KernelSpace attentionSpace(mlir::ModuleOp kernel, Dim3 block, Dim3 maxGrid);

/// Why there is no text on tensor cores; empty where there is one. "-" for a
/// kernel that is no attention of f16 or bf16.
std::string tensorAttentionRefusal(mlir::ModuleOp kernel);

/// The text on tensor cores (mma.sync), for sm_80 and later. Powers are rounded
/// to the type of V before they are multiplied. MGPU_TILE_Y is 16; MGPU_STAGES
/// tiles of keys are in shared memory.
Result<CudaKernel> emitTensorAttention(mlir::ModuleOp kernel,
                                       const CudaEmitOptions &options);
KernelSpace tensorAttentionSpace(mlir::ModuleOp kernel, Dim3 block,
                                 Dim3 maxGrid);

// Products with a sparse matrix that a library (cuSPARSE) can compute in a
// kernel's place. It adds in an order of its own.

/// The product to ask the library for; nothing where the kernel is no such
/// product, or of types that are left to it. The kernel's entry says what it
/// computes, in #mgpu.sparse_product (dialect/conversion/gpu/SparseProducts.h).
std::optional<SparseProduct> librarySparse(mlir::ModuleOp kernel);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_CUDA_PRODUCTFORMS_H

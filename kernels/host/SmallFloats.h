// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_HOST_SMALLFLOATS_H
#define MGPU_KERNELS_HOST_SMALLFLOATS_H

#include "mlir/IR/BuiltinOps.h"

namespace mgpu::kernels {

/// Replaces arith.extf and arith.truncf from or to f8E4M3FN, f8E5M2, bf16 and,
/// where `withHalf`, f16 (from f64 always: no CPU level has it) by integer
/// arithmetic on their bits, and constants of f8 and bf16 by their bits; bf16
/// is then stored as i16. Rounds once, to nearest, ties to even. A number that
/// is too large becomes infinity, in f8E4M3FN, which has none, NaN. A NaN
/// becomes the quiet NaN of its sign. The formats are those of
/// device/host/SmallFloat.h.
void expandSmallFloats(mlir::ModuleOp module, bool withHalf);

/// Replaces math.fma of floats below f32, which MLIR leaves as it is, and with
/// `ofF32` of f32, by arithmetic in f64. Rounds once.
void expandFma(mlir::ModuleOp module, bool ofF32);

/// Multiplies and adds, which rounds twice, where a step of a product of f64 is
/// an fma with the flag `contract`: for processors without fma.
void splitSteps(mlir::ModuleOp module);

/// Replaces the functions of f32 in MLIR's math dialect by Functions.h. Returns
/// whether there are any.
bool expandFunctions(mlir::ModuleOp module);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_HOST_SMALLFLOATS_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_HOST_ERRORBOUNDS_H
#define MGPU_KERNELS_HOST_ERRORBOUNDS_H

// A kernel that computes in f64, and can show how far off its results may be.

#include "mlir/IR/BuiltinOps.h"

namespace mgpu::kernels {

/// Turns a module of thread loops (ThreadLoops.h) into such a kernel: floats in
/// registers become f64; those in memory keep their types. With each goes a
/// bound of its error as docs/numerics.md derives it. `seed` is the position,
/// among the arguments of the host's ABI, of a seed
/// (kernels/space/ErrorSeeds.h): 0 stores what was computed; any other moves
/// each stored float, up or down, by that bound. Directions of any two stores
/// are equal or independent over the trials, half of each up. Fails, with a
/// diagnostic at the op, on what it has no rule for: vectors, and floats that
/// go through calls.
mlir::LogicalResult addErrorBounds(mlir::ModuleOp module, unsigned seed);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_HOST_ERRORBOUNDS_H

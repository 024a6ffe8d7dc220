// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_GPU_GPUHOST_H
#define MGPU_DIALECT_CONVERSION_GPU_GPUHOST_H

// Says in mgpu's words what host code of the gpu dialect leaves unsaid: on
// which device an operation runs, and which stream a token stands for.

#include "dialect/mgpu/MgpuDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/SetVector.h"

namespace mgpu::conversion {

/// The handle of device `index` (-1: the host), made at the head of the
/// function where it is not there yet.
mlir::Value deviceHandle(mlir::func::FuncOp function, int64_t index);

/// The device that gpu.set_default_device chose, in program order.
struct DefaultDevice {
  mlir::Value handle;     ///< null: device 0, as nothing chose one
  bool isUnclear = false; ///< it depends on what ran before
};

/// The default device's handle at `op`. Fails, after a diagnostic, where it is
/// not clear.
mlir::FailureOr<mlir::Value> defaultDeviceAt(mlir::Operation *op,
                                             const DefaultDevice &now);

/// The stream that an operation with dependencies and perhaps a token runs on;
/// null where the host waits for it. Each token is a stream of its own, which
/// has waited for those that it depends on.
mlir::Value streamOf(mlir::OpBuilder &b, mlir::gpu::AsyncOpInterface op,
                     mlir::Value device);

/// Converts one operation of the gpu dialect that allocates, frees, copies,
/// sets or waits, or that says which host memory devices use, and erases it.
mlir::LogicalResult convertMemoryOp(mlir::Operation *op, mlir::Value device);
bool isMemoryOp(mlir::Operation *op);

/// Whether `op` works with handles of sparse matrices or dense tensors.
bool isSparse(mlir::Operation *op);

/// Makes an mgpu.output of a call of a printing function of MLIR's runner, or
/// of a vector.print, and erases it. Nothing where `op` is neither.
void convertPrint(mlir::Operation *op);
bool isPrint(mlir::Operation *op);

/// A call of a function of the runner's that gives a value: `verifyMemRef*`
/// becomes loops of the host; `mgpuMemGetDeviceMemRef*` gives the memory that
/// it is asked for; `rtclock` and `nanoTime`, whose values nothing knows before
/// the program runs, a NaN and 0, with a warning.
mlir::LogicalResult convertRunnerCall(mlir::Operation *op);
bool isRunnerCall(mlir::Operation *op);

// Finds what host code does with memory by itself.

/// Whether host code that runs `op` reads or writes memory there: loads,
/// stores, and operations of the vector dialect on memrefs.
bool touchesMemory(mlir::Operation *op);

/// Whether `op` may write to the memref that it takes.
bool mayWrite(mlir::Operation *op, mlir::Value memref);

/// A size of memory, where the text shows it: a constant, a dimension of a
/// memref that is made of such sizes, or what `depth` operations at most
/// compute of them.
std::optional<int64_t> knownSize(mlir::Value size, int depth = 8);

/// Puts `made`, whose sizes are known, in the place of `memory`. Operations of
/// linalg see the sizes.
void replaceMemory(mlir::Value memory, mlir::Value made);

/// The memrefs that `memref` may be, or be a view of: through views, and
/// through what loops and branches carry.
llvm::SetVector<mlir::Value> rootsOf(mlir::Value memref);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_GPU_GPUHOST_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_TRANSFORMSCHEDULE_H
#define MGPU_DIALECT_CONVERSION_TRANSFORMSCHEDULE_H

// Schedules that a program brings along: sequences of the transform dialect.

#include "mlir/IR/BuiltinOps.h"

namespace mgpu::conversion {

/// The transform dialect, with what it can do to programs of the gpu dialect.
void registerScheduleDialects(mlir::DialectRegistry &registry);

/// Whether the program brings a schedule along: a module with
/// `transform.with_named_sequence`, the program itself or one in it.
bool hasSchedule(mlir::ModuleOp module);

/// Does to the program what its `__transform_main` says, by MLIR's own
/// interpreter, and erases the schedule.
mlir::LogicalResult applySchedule(mlir::ModuleOp module);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_TRANSFORMSCHEDULE_H

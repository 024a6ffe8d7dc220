// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_PRODUCTWORK_H
#define MGPU_PLANNER_IMPORT_PRODUCTWORK_H

#include "dialect/mgpu/MgpuDialect.h"
#include "planner/dag/Dag.h"
#include "planner/import/HostValue.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace mgpu::planner {

/// What a launch that is a matrix product of f32 or f64 asks of a GPU in its
/// default tiles; none of other types, which a library computes. `valueOf` as
/// summariseKernel() has it.
std::optional<LaunchWork>
productWorkOf(ir::LaunchOp launch, Dim3 grid, Dim3 block,
              llvm::function_ref<HostValue(mlir::Value)> valueOf);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_PRODUCTWORK_H

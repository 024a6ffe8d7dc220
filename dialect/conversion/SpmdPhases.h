// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SPMDPHASES_H
#define MGPU_DIALECT_CONVERSION_SPMDPHASES_H

// The phases of buildSpmdPipeline(), for a caller that verifies the module
// after each of them and not after each pass: that would be a third of the time
// of a large program.

#include "dialect/conversion/ExchangeCost.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>

namespace mgpu::conversion {

/// The user's program becomes one function of linalg, tensor, arith, math and
/// scf, with operations of spmd. `cost` is that of createPartitionTensors();
/// `calls` is false where hasOtherFunctions() is.
void addSpmdFrontEnds(mlir::OpPassManager &passes,
                      const SpmdPipelineOptions &options,
                      const ExchangeCost &cost = nullptr, bool calls = true);

/// Whether there may be calls.
bool hasOtherFunctions(mlir::ModuleOp module);

/// Operations fuse, and arguments, results and loops get their tensors.
void addSpmdPlacement(mlir::OpPassManager &passes,
                      const SpmdPipelineOptions &options);

/// Whether bufferization may have to put a tensor into a part of another.
bool hasInsertions(mlir::ModuleOp module);

/// Tensors become buffers, and one function the program of all devices.
/// `insertions` is false where hasInsertions() is.
void addSpmdBufferization(mlir::OpPassManager &passes,
                          const SpmdPipelineOptions &options,
                          bool insertions = true);

// A program as a client of PJRT calls it: each device has arguments and results
// of its own.

/// Gives the entry the arguments of each device, one device behind the other,
/// and so its results. Attributes of donated arguments go: a caller gives
/// all arguments of every call. Returns what one device gives and takes, in
/// lines:
///
///   processes REPLICAS PARTITIONS
///   module NAME
///   argument TYPE SIZExSIZE DONATED    (the result that takes its place, or -)
///   result TYPE SIZExSIZE              (- for a scalar)
///
/// Fails with an error at what is no tensor of a known shape, and at shardings
/// that have no such parts.
mlir::FailureOr<std::string>
callPerDevice(mlir::func::FuncOp entry, int64_t replicas, int64_t partitions);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_SPMDPHASES_H

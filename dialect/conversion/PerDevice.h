// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_PERDEVICE_H
#define MGPU_DIALECT_CONVERSION_PERDEVICE_H

// A program as a client of PJRT calls it: each device has arguments and results
// of its own.

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>

namespace mgpu::conversion {

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

#endif // MGPU_DIALECT_CONVERSION_PERDEVICE_H

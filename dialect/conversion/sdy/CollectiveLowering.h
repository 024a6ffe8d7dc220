// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SDY_COLLECTIVELOWERING_H
#define MGPU_DIALECT_CONVERSION_SDY_COLLECTIVELOWERING_H

#include "dialect/conversion/sdy/ManualCode.h"
#include "dialect/conversion/sdy/TensorParts.h"
#include "dialect/stablehlo/StablehloDialect.h"

namespace mgpu::conversion {

// Which devices a collective of StableHLO names.

/// Devices in a grid of replicas, each of several partitions; numbers are
/// row-major.
struct ProcessGrid {
  int64_t replicas = 1, partitions = 1;
  int64_t devices() const { return replicas * partitions; }
};

/// The meaning of the numbers of a collective's groups.
enum class GroupIds { Replicas, Partitions, ReplicasOfAllPartitions, Devices };

/// The meaning by the specification, for collectives that have, or have no,
/// mode for numbers of partitions.
GroupIds groupIdsOf(stablehlo::ChannelHandleAttr channel, bool useGlobalIds,
                    bool ofPartitions);

/// The groups of devices. Fails with an error at `op`.
mlir::FailureOr<spmd::DeviceGroups> groupsOf(mlir::Operation *op,
                                             mlir::Attribute groups,
                                             GroupIds ids, ProcessGrid grid);

/// Whether devices exchange data in `op`, or it asks which one it is.
bool isCollective(mlir::Operation *op);

/// Replaces a collective of stablehlo by those of spmd. Fails with an error at
/// the operation.
mlir::LogicalResult lowerCollective(mlir::Operation *op, DeviceCode &code,
                                    ProcessGrid grid);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_SDY_COLLECTIVELOWERING_H

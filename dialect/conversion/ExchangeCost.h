// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_EXCHANGECOST_H
#define MGPU_DIALECT_CONVERSION_EXCHANGECOST_H

// The exchanges of a reshard, for a caller that knows what they cost.

#include "dialect/conversion/Passes.h"

#include <functional>
#include <vector>

namespace mgpu::conversion {

/// A collective of each of some groups of devices, or copies between devices.
struct Exchange {
  enum class Kind {
    AllToAll,
    AllGather,
    ReduceScatter,
    AllReduce,
    Broadcast,
    Permute,
    Copies
  };
  struct Copy {
    int64_t from = 0, to = 0, bytes = 0;
  };
  Kind kind = Kind::Copies;
  /// Collectives: the larger of what a device gives and what it gets.
  int64_t bytes = 0;
  std::vector<std::vector<int64_t>> groups; ///< of collectives: the devices
  std::vector<Copy> copies;                 ///< in the order of the program
};

/// How many microseconds an exchange takes where nothing else runs. A null one
/// stands for the bytes that a device receives.
using ExchangeCost = std::function<double(const Exchange &)>;

/// Partitions as createPartitionTensors() does, with tensors resharded in the
/// ways that cost least by `cost`.
std::unique_ptr<mlir::Pass>
createPartitionTensors(const PartitionTensorsOptions &options,
                       ExchangeCost cost);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_EXCHANGECOST_H

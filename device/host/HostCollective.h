// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_HOSTCOLLECTIVE_H
#define MGPU_DEVICE_HOST_HOSTCOLLECTIVE_H

// Collectives between the memories of host devices, as CollectiveSteps.h
// defines them.

#include "device/api/CollectiveSteps.h"
#include "device/api/CopyNest.h"
#include "support/Types.h"

#include <cstddef>
#include <memory>

namespace mgpu::device {

// accumulator[i] = accumulator[i] op input[i], in the arithmetic of
// device/api/CollectiveSteps.h.

using ReduceFunction = void (*)(std::byte *accumulator, const std::byte *input,
                                size_t count);

/// Addresses need no alignment.
ReduceFunction reduceFunction(ElementType type, ReductionKind kind);

class Collective {
public:
  /// Allocates whatever staging run() will need.
  static Result<std::unique_ptr<Collective>>
  create(const CollectiveNodeParams &params);
  /// Moves in any order, all read as they were before; zeroMove's among them
  /// are of `zeros`.
  static Result<std::unique_ptr<Collective>> create(std::vector<BoxMove> moves);
  static const std::byte zeros[8];
  void run();

private:
  Result<std::byte *> stage(uint64_t bytes);
  Result<void> take(CollectiveSteps steps);
  void reduce(const ElementwiseReduction &reduction);

  std::vector<std::unique_ptr<std::byte[]>> staging;
  std::vector<StridedCopy> stageIn;
  std::vector<ElementwiseReduction> reductions;
  std::vector<StridedCopy> moves;
  ReduceFunction function = nullptr;
  uint32_t elementBytes = 1;
  std::unique_ptr<std::byte[]> accumulator; ///< chunkBytes
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_HOST_HOSTCOLLECTIVE_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_COLLECTIVES_H
#define MGPU_DEVICE_HOST_COLLECTIVES_H

// Collectives between the memories of host devices, as CollectiveSteps.h
// defines them.

#include "device/api/CollectiveSteps.h"
#include "device/api/StridedCopy.h"
#include "device/host/Reduce.h"

#include <memory>

namespace mgpu::device {

class Collective {
public:
  /// Allocates whatever staging run() will need.
  static Result<std::unique_ptr<Collective>>
  create(const CollectiveNodeParams &params);
  void run();

private:
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

#endif // MGPU_DEVICE_HOST_COLLECTIVES_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_COLLECTIVES_H
#define MGPU_DEVICE_HOST_COLLECTIVES_H

// Collectives between the memories of host devices. Ranks are combined in rank
// order (Reduce.h has the arithmetic), so results are bitwise reproducible.
//   all_reduce      recv_i = send_0 op send_1 op ...
//   reduce_scatter  recv_i = slice i of that; send has n x recv elements
//   all_gather      slice i of every recv = send_i; or, where send and recv are
//                   of equal size, = slice i of send_i (in place)
//   all_to_all      slice j of recv_i = slice i of send_j
//   broadcast       recv_i = send_root; other sends are not looked at
//   send_recv       recv_1 = send_0; the other two boxes are not looked at
// Slices are equal parts in row-major order. All sends are read as they were
// before the collective, however sends and receives overlap.

#include "device/api/GraphDriver.h"
#include "device/host/Reduce.h"
#include "device/host/StridedCopy.h"

namespace mgpu::device {

class Collective {
public:
  /// Allocates whatever staging run() will need.
  static Result<std::unique_ptr<Collective>>
  create(const CollectiveNodeParams &params);
  void run();

private:
  /// outputs[*][i] = inputs[0][i] op inputs[1][i] op ..., all contiguous.
  struct Reduction {
    std::vector<const std::byte *> inputs;
    std::vector<std::byte *> outputs;
    size_t count = 0;
  };
  struct Builder;

  void reduce(const Reduction &reduction);

  std::vector<std::unique_ptr<std::byte[]>> staging;
  std::vector<StridedCopy> stageIn;
  std::vector<Reduction> reductions;
  std::vector<StridedCopy> moves;
  ReduceFunction function = nullptr;
  uint32_t elementBytes = 1;
  std::unique_ptr<std::byte[]> accumulator; ///< chunkBytes
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_HOST_COLLECTIVES_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_GRAPH_GRAPHSPEC_H
#define MGPU_DEVICE_CUDA_GRAPH_GRAPHSPEC_H

// A CUDA graph as data of ours, so that it can be made more than once: plainly
// for replays, and with an event around every node for timed ones.

#include "device/api/GraphDriver.h"
#include "device/cuda/api/CublasLtProducts.h"
#include "device/cuda/api/CusparseProducts.h"
#include "device/cuda/nccl/Communicators.h"

#include <array>
#include <cstring>
#include <memory>
#include <variant>

namespace mgpu::device {

struct EmptyNode {};

struct KernelLaunch {
  CUkernel kernel = nullptr;
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  uint32_t sharedBytes = 0;
  bool isUrgent = false; ///< others wait for it: the highest priority
  /// The values of its parameters, each at the next multiple of 16.
  std::vector<std::byte> values;
  std::vector<uint32_t> offsets;

  void addParameter(const void *value, size_t size) {
    offsets.push_back(uint32_t(values.size()));
    values.resize((values.size() + size + 15) / 16 * 16);
    std::memcpy(values.data() + offsets.back(), value, size);
  }
};

/// The parameters of a copy node; the rest of its struct is zero.
struct CopyLaunch {
  CUDA_MEMCPY3D copy{};
};

/// Copies the GPU's 1 to a word of pinned memory: what came before it has
/// ended. A copy, because a memset's destination is the GPU's (cuda.h 1829).
struct MarkLaunch {
  const std::byte *one = nullptr; ///< CudaState::one()
  uint32_t *word = nullptr;
};

/// An NcclCall, a ProductCall and a SparseCall become the nodes that a capture
/// of them adds.
using NodeWork = std::variant<EmptyNode, KernelLaunch, CopyLaunch, NcclCall,
                              MarkLaunch, ProductCall, SparseCall>;

/// One node of CUDA's. `dependencies` are earlier specs.
struct NodeSpec {
  NodeWork work;
  std::vector<uint32_t> dependencies;
  /// A KernelLaunch after one other, for which its own text waits: it may begin
  /// before that has ended, by a programmatic edge.
  bool isEarly = false;
};

/// The specs a node of ours became: [first, last), where `end` ends it.
struct SpecRange {
  uint32_t first = 0, last = 0, end = 0;
  DeviceId device;
  std::string name;
};

struct GraphSpec {
  std::vector<NodeSpec> nodes;
  std::vector<SpecRange> ranges; ///< by GraphNodeId
  /// The collectives among ranks, in the order in which they run.
  struct Mark {
    uint32_t range;
    std::vector<DeviceId> members;
    uint32_t *word; ///< 1 once it has ended
  };
  std::vector<Mark> marks;
  /// Memory that its copies, collectives and marks need beside the buffers.
  std::vector<std::shared_ptr<std::byte>> staging;
};

/// Whether nothing of the work differs.
bool isSame(const NodeWork &a, const NodeWork &b);

/// Whether the one can become the other by cuGraphExecNodeSetParams: the same
/// nodes with the same edges. All of a kernel may change but its priority. The
/// addresses of a copy or mark may change if it has one dimension. Nothing of a
/// library's call may (cuda.h 21860, cuGraphExecMemcpyNodeSetParams).
bool isUpdatable(const GraphSpec &from, const GraphSpec &to);

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_GRAPH_GRAPHSPEC_H

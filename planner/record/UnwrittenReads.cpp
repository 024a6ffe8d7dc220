// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/record/UnwrittenReads.h"

#include <algorithm>

namespace mgpu::planner {

namespace {

/// The bytes from the first to the last that were written.
struct Written {
  int64_t first = INT64_MAX, last = INT64_MIN;

  void add(const Box &box) {
    const auto [low, high] = box.byteRange();
    first = std::min(first, low);
    last = std::max(last, high);
  }
  bool meets(const Box &box) const {
    const auto [low, high] = box.byteRange();
    return low < last && first < high;
  }
};

} // namespace

std::vector<UnwrittenRead>
findUnwrittenReads(const Dag &dag,
                   const std::function<bool(NodeId, size_t)> &isExact) {
  std::vector<Written> written(dag.buffers.size());
  auto write = [&](const DagNode &node) {
    for (const BufferUse &use : node.uses)
      if (use.writes)
        written[use.buffer.value].add(use.box);
  };
  for (const DagNode &node : dag.nodes)
    if (std::holds_alternative<CollectiveCall>(node.work))
      write(node);
  std::vector<UnwrittenRead> found;
  std::vector<bool> isFound(dag.buffers.size());
  for (uint32_t n = 0; n < dag.nodes.size(); ++n) {
    const DagNode &node = dag.nodes[n];
    for (size_t u = 0; u < node.uses.size(); ++u) {
      const BufferUse &use = node.uses[u];
      const Buffer &buffer = dag.buffer(use.buffer);
      const bool writesIt =
          std::any_of(node.uses.begin(), node.uses.end(), [&](const auto &any) {
            return any.writes && any.buffer == use.buffer;
          });
      if (!use.reads || writesIt || buffer.device.isHost() ||
          buffer.sizeBytes == 0 || // there is nothing to write
          buffer.role != BufferRole::Temporary || isFound[use.buffer.value] ||
          !isExact({n}, u) || written[use.buffer.value].meets(use.box))
        continue;
      isFound[use.buffer.value] = true;
      found.push_back({{n}, u});
    }
    write(node);
  }
  return found;
}

} // namespace mgpu::planner

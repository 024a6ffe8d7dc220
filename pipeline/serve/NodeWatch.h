// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_SERVE_NODEWATCH_H
#define MGPU_PIPELINE_SERVE_NODEWATCH_H

// Which nodes run on the host now: so that a late replay can name them and
// leave out what follows, and for the ranges of a profiler of NVIDIA's.

#include "capture/replay/Replayer.h"

#include <array>
#include <atomic>
#include <string>
#include <vector>

namespace mgpu::pipeline::serve {

/// NVTX, where its library is found.
struct Nvtx {
  int (*push)(const char *name) = nullptr; ///< null: there is none
  int (*pop)() = nullptr;
  /// Looks for the library once in the process.
  static const Nvtx &get();
};

class NodeWatch final : public capture::ReplayObserver {
public:
  /// With `marks` each node is a range of NVTX.
  NodeWatch(const planner::Dag &dag, bool marks);

  bool begin(planner::NodeId node, uint32_t queue) override;
  void end(planner::NodeId node, uint32_t queue) override;

  /// From here on no node begins.
  void stop() { isStopped.store(true, std::memory_order_relaxed); }
  /// "node 'a'", "nodes 'a', 'b'", or "no node", of those that run now.
  std::string running() const;

private:
  std::vector<std::string> names; ///< by node; a late thread outlives the DAG
  Nvtx nvtx;
  std::atomic<bool> isStopped{false};
  /// By queue, of which the host has no more: one more than the node, or 0.
  std::array<std::atomic<uint32_t>, 257> current{};
};

} // namespace mgpu::pipeline::serve

#endif // MGPU_PIPELINE_SERVE_NODEWATCH_H

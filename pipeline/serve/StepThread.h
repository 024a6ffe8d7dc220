// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_SERVE_STEPTHREAD_H
#define MGPU_PIPELINE_SERVE_STEPTHREAD_H

// A deadline on the host, where no thread can be stopped: the steps of a
// program run on a thread beside the caller's, who does not wait for one that
// is late.

#include "capture/ranks/Runner.h"
#include "capture/replay/Replayer.h"

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace mgpu::pipeline::serve {

// Which nodes run on the host now: so that a late replay can name them and
// leave out what follows, and for the ranges of a profiler of NVIDIA's.

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

enum class Step : uint8_t { Load, Replay, TimedReplay, Fetch };

/// Does a step at once. A replay sets `us`, a timed one `timed`.
Result<void> runStep(capture::Runner &runner, Step step, double &us,
                     std::vector<capture::TimedReplay> &timed);

class StepThread {
public:
  /// `owner` keeps `runner`, and all that it needs, for as long as a thread may
  /// be in it. A deadline of 0 is none, and needs no `watch`. Throws
  /// std::system_error where the system refuses a thread.
  StepThread(std::shared_ptr<void> owner, capture::Runner &runner,
             std::shared_ptr<NodeWatch> watch,
             std::chrono::milliseconds deadline);
  /// Leaves a step that is late to itself.
  ~StepThread();
  StepThread(const StepThread &) = delete;
  StepThread &operator=(const StepThread &) = delete;

  /// Does a step as runStep() does. One that is late is an error that names the
  /// nodes that run; it ends at the next node, and no other may follow.
  Result<void> run(Step step, double &us,
                   std::vector<capture::TimedReplay> &timed) {
    begin(step);
    return wait(us, timed);
  }
  /// The two halves of it, in turns.
  void begin(Step step);
  Result<void> wait(double &us, std::vector<capture::TimedReplay> &timed);
  bool isLate() const { return late; }
  /// Keeps `owner` as well until a step that is late has ended.
  void keep(std::shared_ptr<void> owner);

private:
  struct Shared;
  std::shared_ptr<Shared> shared;
  std::shared_ptr<NodeWatch> watch;
  const std::chrono::milliseconds deadline;
  std::chrono::steady_clock::time_point begun;
  bool late = false;
  std::thread thread;
};

} // namespace mgpu::pipeline::serve

#endif // MGPU_PIPELINE_SERVE_STEPTHREAD_H

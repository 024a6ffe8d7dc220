// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_SERVE_AUDIT_H
#define MGPU_PIPELINE_SERVE_AUDIT_H

// Compares a replay with a reference: the same program in other memory, where
// each buffer has a place of its own, one node after the other.

#include "capture/ranks/Runner.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mgpu::pipeline::serve {

/// Says how a replay differs from its reference.
struct Difference {
  std::string what;     ///< a sentence
  bool isJudged = true; ///< false: the reference differs from itself as well
};

class Audit {
public:
  virtual ~Audit();
  /// On the host in one process, else Unsupported: each node's output is hashed
  /// as it ends, and some nodes are held up. `runner` replays the program, with
  /// its kernels by KernelId. All but the kernels outlive it.
  static Result<std::unique_ptr<Audit>>
  onHost(const planner::Dag &dag, const planner::Plan &plan,
         std::span<const std::vector<std::byte>> kernels,
         capture::Runner &runner);

  /// Opens the reference beside the program, by a plan that outlives it.
  using Open = std::function<Result<std::unique_ptr<capture::Runner>>(
      const planner::Plan &)>;
  /// On GPUs: outputs are compared once a replay has ended, as far as they are
  /// still there. Unsupported where state stays on the devices that no fetch
  /// brings back.
  static Result<std::unique_ptr<Audit>> onGpus(const planner::Dag &dag,
                                               const planner::Plan &plan,
                                               capture::Runner &runner,
                                               const Open &open);

  /// Once the runner has loaded: the reference loads the same.
  virtual Result<void> load() = 0;
  /// Replays both, and compares. Gives what differs, with the first node that
  /// wrote something else; none where nothing does.
  virtual Result<std::optional<Difference>> replay(double &us) = 0;
  /// Replays the reference in the runner's place: its state goes on, and its
  /// results are put in the runner's memory.
  virtual Result<void> replayReference(double &us) = 0;
  /// Puts what the reference made of the last replay() in the runner's memory.
  virtual Result<void> takeReference() = 0;
  /// The time of all serial replays that replay() made.
  double serialUs() const { return totalSerialUs; }

protected:
  double totalSerialUs = 0;
};

/// "node 'gelu' (mlp.py:12)".
std::string nameOf(const planner::DagNode &node);

} // namespace mgpu::pipeline::serve

#endif // MGPU_PIPELINE_SERVE_AUDIT_H

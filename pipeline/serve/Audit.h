// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_SERVE_AUDIT_H
#define MGPU_PIPELINE_SERVE_AUDIT_H

// Compares a replay on the host with a reference: the same program in other
// memory, where each buffer has a place of its own, on one thread. Each node's
// output is hashed as it ends, so the first node that differs is known.

#include "capture/ranks/Runner.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mgpu::pipeline::serve {

/// Hashes what each node writes, and may hold nodes up.
class NodeHashes final : public capture::ReplayObserver {
public:
  explicit NodeHashes(const planner::Dag &dag)
      : dag(dag), hashes(dag.nodes.size()) {}
  bool begin(planner::NodeId node, uint32_t queue) override;
  void end(planner::NodeId node, uint32_t queue) override;
  void clear() { hashes.assign(hashes.size(), 0); }

  const planner::Dag &dag;
  /// A sixteenth of the nodes wait before they begin, together so long; in
  /// sixteen rounds each does.
  double delayUs = 0; ///< 0: none
  uint64_t round = 0;
  std::atomic<bool> isAlone{true}; ///< one thread runs all, so none is held up
  std::vector<std::byte *> places; ///< by BufferId
  std::vector<uint64_t> hashes;    ///< by NodeId
};

/// Says how a replay differs from its reference.
struct Difference {
  std::string what;     ///< a sentence
  bool isJudged = true; ///< false: the reference differs from itself as well
};

class Audit {
public:
  /// The program that `runner` replays, with its kernels by KernelId. All but
  /// the kernels outlive it. Unsupported but on the host in one process.
  static Result<std::unique_ptr<Audit>>
  create(const planner::Dag &dag, const planner::Plan &plan,
         std::span<const std::vector<std::byte>> kernels,
         capture::Runner &runner);

  /// Once the runner has loaded: the reference loads the same.
  Result<void> load();
  /// Replays both, and compares. Gives what differs, with the first node that
  /// wrote something else; none where nothing does.
  Result<std::optional<Difference>> replay(double &us);
  /// Replays the reference in the runner's place: its state goes on, and its
  /// results are put in the runner's memory.
  Result<void> replayReference(double &us);
  /// Puts what the reference made of the last replay() in the runner's memory.
  void takeReference() { copy(written, true); }

private:
  Audit(const planner::Dag &dag, const planner::Plan &plan,
        capture::Runner &runner);
  /// Replays the reference from what the runner began with, in memory that is
  /// filled with a byte where nothing lives on.
  Result<void> runReference(std::byte fill);
  /// Copies these buffers from the runner's memory to the reference's, or back.
  void copy(const std::vector<planner::BufferId> &which, bool isBack);
  std::optional<Difference> difference() const;

  const planner::Dag &dag;
  const planner::Plan spread; ///< the plan with a place for each buffer
  capture::Runner &runner;
  std::unique_ptr<device::Driver> driver;
  std::optional<capture::Replayer> reference;
  NodeHashes found, expected;
  /// By NodeId: false where the hash is also of what the node does not write.
  std::vector<bool> isSteady;
  std::vector<planner::NodeId> order; ///< nodes of a replay, as planned
  /// Buffers that live on from replay to replay, of those the ones that
  /// replays write, and those that replays alone use.
  std::vector<planner::BufferId> kept, written, passing;
  std::vector<std::vector<std::byte>> before; ///< of `written`
  uint64_t numAudits = 0;
};

} // namespace mgpu::pipeline::serve

#endif // MGPU_PIPELINE_SERVE_AUDIT_H

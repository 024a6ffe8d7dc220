// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_TRANSFORM_FILEREWRITE_H
#define MGPU_PLANNER_SCHEDULE_TRANSFORM_FILEREWRITE_H

// Transforms of DAGs whose nodes are known only by their cost (mgpu-dag/2
// files). What a node touches is its output, whole, and the outputs it depends
// on; each transform fires only where that and the file's own words are proof
// enough, and says of the others why they stay.

#include "planner/schedule/transform/Transform.h"

#include <map>

namespace mgpu::planner {

/// Counts why candidates were left, for people.
class SkippedCandidates {
public:
  void add(const Dag &dag, uint32_t node, std::string why);
  /// One line per reason, the most frequent first: how many, and the first.
  std::vector<std::string> lines() const;

private:
  struct Left {
    uint32_t count = 0;
    std::string first;
  };
  std::map<std::string, Left> byReason;
};

/// The nodes of a DAG being changed. Every node keeps its number until
/// finish(), which drops those marked gone, adds new ones behind the node they
/// are given to, and finds dependences through buffers again.
class FileRewrite {
public:
  FileRewrite(Dag &dag, const TransformContext &context);

  /// Members of an opaque collective that every rank takes part in: known where
  /// the file is spmd, or lists a device for each member. Nothing for others,
  /// with the reason in `why`.
  std::optional<uint32_t> ranksOf(uint32_t node, std::string *why) const;
  const OpaqueCall *collective(uint32_t node, CollectiveKind kind) const;

  /// Dependences of all kinds, by number.
  std::vector<std::vector<uint32_t>> before, after;
  std::vector<DagNode> nodes;
  std::vector<bool> gone;
  std::vector<std::vector<uint32_t>> users; ///< by buffer: nodes, ascending

  /// The one buffer a node writes; nothing where there are several or none.
  std::optional<BufferId> output(uint32_t node) const;
  BufferId addBuffer(std::string name, DeviceId device, uint64_t bytes);
  /// A node near the old node `near`; its number.
  uint32_t insert(uint32_t near, DagNode node, std::vector<uint32_t> follows);
  void addEdge(uint32_t from, uint32_t to);
  /// Takes a node out; its neighbours forget it.
  void remove(uint32_t node);
  /// Who followed `from` follows `to` as well.
  void follow(uint32_t from, uint32_t to);

  /// What frozen work becomes: `was` took as long as the file says, `is` takes
  /// that times the ratio of the estimates of both. Nothing without frozen
  /// durations, or without estimates to take the ratio of.
  std::optional<double> price(const std::vector<DagNode> &was,
                              const DagNode &is) const;

  /// All nodes that are left, in an order that keeps all dependences and is
  /// near the old; fewer where the dependences have become a ring.
  std::vector<uint32_t> order() const;
  /// Puts the nodes back into the DAG in that order. Buffers nobody uses any
  /// more shrink to nothing. Internal where there is a ring.
  Result<void> finish();

private:
  Dag &dag;
  const TransformContext &context;
  std::vector<uint32_t> place; ///< by node: the number of the old one near it
};

// One .cpp each; the number of changes.
Result<uint32_t> scatterFileReduces(Dag &dag, const TransformContext &context,
                                    SkippedCandidates &left);
Result<uint32_t> bucketFileReduces(Dag &dag, const TransformContext &context,
                                   SkippedCandidates &left);
Result<uint32_t> splitFileReduces(Dag &dag, const TransformContext &context,
                                  SkippedCandidates &left);
Result<uint32_t> chunkFileReduces(Dag &dag, uint32_t count,
                                  const TransformContext &context,
                                  SkippedCandidates &left);
/// `counts`: one per group.
Result<uint32_t> chunkFileReduces(Dag &dag, const std::vector<uint32_t> &counts,
                                  const TransformContext &context,
                                  SkippedCandidates &left);
std::vector<std::vector<NodeId>> fileChunkGroups(const Dag &dag);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_TRANSFORM_FILEREWRITE_H

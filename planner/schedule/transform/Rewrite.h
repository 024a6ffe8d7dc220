// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_TRANSFORM_REWRITE_H
#define MGPU_PLANNER_SCHEDULE_TRANSFORM_REWRITE_H

// The parts that the transforms share. Nodes known only by their cost
// (mgpu-dag/2 files) are nodes like others here: such a node touches its
// output, whole, and the outputs it depends on.

#include "planner/schedule/transform/Transform.h"

#include <functional>
#include <map>
#include <memory>
#include <unordered_set>

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

/// A DAG that is to change, what durations rest on, and why the rest stays.
struct Rewriting {
  const Dag &dag;
  const LatencyEstimator *prices = nullptr;
  SkippedCandidates &left;
};

/// Edges that no buffer explains, but the words of a file.
std::vector<DepEdge> givenEdges(const Dag &dag);

/// A node, and the numbers of the old ones it was made of.
struct NewNode {
  std::vector<uint32_t> madeOf;
  std::unique_ptr<DagNode> node; ///< null: the old one, as it is
  NewNode(uint32_t same) : madeOf{same} {}
  NewNode(DagNode made, std::vector<uint32_t> madeOf)
      : madeOf(std::move(madeOf)),
        node(std::make_unique<DagNode>(std::move(made))) {}
};

/// Where a buffer's bytes are now: `offset` bytes into `buffer`.
struct NewPlace {
  BufferId buffer;
  int64_t offset = 0;
};
/// Nothing of a buffer that stays.
using NewPlaces = std::function<std::optional<NewPlace>(BufferId)>;

/// Buffers of a changed DAG. They begin as those of the DAG.
class NewBuffers {
public:
  explicit NewBuffers(const Dag &dag) : dag(dag) {}
  /// Adds one on a device; its name gets marks until it is the only one.
  BufferId add(std::string name, DeviceId device, uint64_t bytes);
  /// One that add() made.
  Buffer &added(BufferId id) { return made[id.value - dag.buffers.size()]; }
  /// Its bytes are elsewhere, or nowhere.
  void empty(BufferId id) { emptied.push_back(id); }
  /// It is kept to the end.
  void keep(BufferId id) { kept.push_back(id); }
  std::vector<Buffer> all() const;

private:
  const Dag &dag;
  std::vector<Buffer> made;
  std::vector<BufferId> emptied, kept;
  std::unordered_set<std::string> names; ///< of all buffers, once one is added
};

/// The DAG with the buffers and `nodes`, in program order, with every mention
/// of the buffers that `moved` knows sent elsewhere, and the dependences
/// through buffers found again. A dependence of a file that no buffer explains
/// leads from all that was made of its one end to all that was made of the
/// other. Buffers of files that nobody uses any more shrink to nothing.
Dag replaceNodes(const Dag &dag, const NewBuffers &buffers,
                 std::vector<NewNode> nodes, const NewPlaces &moved = nullptr);

/// The bytes a collective's members touch.
std::vector<BufferUse> usesOf(const CollectiveCall &call);

/// Part `index` of `count` equal ones of a contiguous box; nothing where it
/// does not divide.
std::optional<Box> partOf(const Box &box, size_t index, size_t count);

int64_t bytesOf(const Box &box);
/// The one buffer a node writes; nothing where there are several or none.
std::optional<BufferId> outputOf(const DagNode &node);

/// An all_reduce that transforms may change: bytes of each rank.
struct ReduceFacts {
  uint64_t bytes = 0;
  uint32_t ranks = 0;
};
/// Nothing of other nodes; and, with the reason in `why`, of those that must
/// stay: of a program because its duration is frozen, of a file because not all
/// ranks are known to take part.
std::optional<ReduceFacts> reduceOf(const Dag &dag, const DagNode &node,
                                    std::string &why);

/// The time that frozen work becomes: `was` took as long as the file says, `is`
/// takes that times the ratio of the estimates of both. Nothing without frozen
/// durations, or without estimates to take the ratio of.
std::optional<double> frozenPrice(const Rewriting &rewriting,
                                  std::span<const DagNode *const> was,
                                  const DagNode &is);

// One .cpp each.
Transformed dropCopies(const Dag &dag);
Transformed scatterReduces(const Rewriting &rewriting);
Transformed bucketReduces(const Rewriting &rewriting);
Transformed splitReduces(const Rewriting &rewriting);
Transformed chunkCollectives(const Rewriting &rewriting, uint32_t count);
/// `groups` as chunkGroups() gives them; `counts`: one for each.
Transformed chunkCollectives(const Rewriting &rewriting,
                             const std::vector<std::vector<NodeId>> &groups,
                             const std::vector<uint32_t> &counts);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_TRANSFORM_REWRITE_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/transform/Rewrite.h"

#include <algorithm>

namespace mgpu::planner {

namespace {

struct Use {
  uint32_t node;
  const BufferUse *use;
};

/// Finds one copy that can go; the program is looked at anew after each.
class CopyDropper {
public:
  explicit CopyDropper(const Dag &dag) : dag(dag) {}

  std::optional<Dag> dropOne() {
    if (std::none_of(dag.nodes.begin(), dag.nodes.end(),
                     [](const DagNode &node) {
                       return std::holds_alternative<CopyCall>(node.work) &&
                              node.phase == Phase::Replay;
                     }))
      return std::nullopt;
    usesOf.assign(dag.buffers.size(), {});
    lasting.assign(dag.buffers.size(), false);
    isGiven.assign(dag.nodes.size(), false);
    for (const DepEdge &edge : givenEdges(dag))
      isGiven[edge.from.value] = isGiven[edge.to.value] = true;
    for (uint32_t i = 0; i < dag.nodes.size(); ++i)
      for (const BufferUse &use : dag.nodes[i].uses) {
        usesOf[use.buffer.value].push_back({i, &use});
        if (dag.nodes[i].phase != Phase::Replay)
          lasting[use.buffer.value] = true;
      }
    for (uint32_t i = 0; i < dag.nodes.size(); ++i) {
      auto *copy = std::get_if<CopyCall>(&dag.nodes[i].work);
      if (!copy || dag.nodes[i].phase != Phase::Replay || isGiven[i])
        continue;
      if (isDead(*copy) || isRepeated(i, *copy))
        return erase(i, std::nullopt);
      if (canForward(i, *copy))
        return erase(i, *copy);
    }
    return std::nullopt;
  }

private:
  /// Bytes whose value ends with the replay.
  bool isOurs(BufferId id) const {
    return dag.buffer(id).role == BufferRole::Temporary && !lasting[id.value];
  }
  bool isRead(BufferId id, const Box &box) const {
    return std::any_of(
        usesOf[id.value].begin(), usesOf[id.value].end(), [&](const Use &use) {
          return use.use->reads && overlap(use.use->box, box) != Overlap::None;
        });
  }
  /// By a node between the two, themselves left out.
  bool isWrittenBetween(uint32_t first, uint32_t last, BufferId id,
                        const Box &box) const {
    return std::any_of(
        usesOf[id.value].begin(), usesOf[id.value].end(), [&](const Use &use) {
          return first < use.node && use.node < last && use.use->writes &&
                 overlap(use.use->box, box) != Overlap::None;
        });
  }

  bool isDead(const CopyCall &copy) const {
    return isOurs(copy.destination) &&
           !isRead(copy.destination, copy.destinationBox);
  }

  /// An earlier copy did the same, and neither side has been written since.
  bool isRepeated(uint32_t i, const CopyCall &copy) const {
    if (copy.source == copy.destination)
      return false;
    for (const Use &use : usesOf[copy.destination.value]) {
      auto *other = std::get_if<CopyCall>(&dag.nodes[use.node].work);
      if (use.node >= i || !use.use->writes || !other ||
          dag.nodes[use.node].phase != Phase::Replay ||
          other->source != copy.source ||
          other->destination != copy.destination ||
          !(other->sourceBox == copy.sourceBox) ||
          !(other->destinationBox == copy.destinationBox))
        continue;
      if (!isWrittenBetween(use.node, i, copy.source, copy.sourceBox) &&
          !isWrittenBetween(use.node, i, copy.destination, copy.destinationBox))
        return true;
    }
    return false;
  }

  /// Whole to whole in one memory, the destination written by nothing else, the
  /// source by nothing until the last reader: the readers can read the source.
  bool canForward(uint32_t i, const CopyCall &copy) const {
    const Buffer &source = dag.buffer(copy.source);
    const Buffer &destination = dag.buffer(copy.destination);
    if (copy.source == copy.destination || source.device.isHost() ||
        source.device != destination.device || !isOurs(copy.destination) ||
        !isWhole(copy.sourceBox, source) ||
        !isWhole(copy.destinationBox, destination))
      return false;
    uint32_t last = i;
    for (const Use &use : usesOf[copy.destination.value]) {
      if (use.node == i)
        continue;
      if (use.use->writes || use.node < i)
        return false;
      last = std::max(last, use.node);
    }
    return !isWrittenBetween(i, last + 1, copy.source, copy.sourceBox);
  }

  Dag erase(uint32_t i, std::optional<CopyCall> forwarded) {
    std::vector<NewNode> nodes;
    nodes.reserve(dag.nodes.size());
    for (uint32_t k = 0; k < dag.nodes.size(); ++k)
      if (k != i)
        nodes.push_back(k);
    NewBuffers buffers(dag);
    if (forwarded)
      buffers.empty(forwarded->destination);
    return replaceNodes(dag, buffers, std::move(nodes),
                        [&](BufferId id) -> std::optional<NewPlace> {
                          if (!forwarded || id != forwarded->destination)
                            return std::nullopt;
                          return NewPlace{forwarded->source, 0};
                        });
  }

  const Dag &dag;
  std::vector<std::vector<Use>> usesOf; ///< by buffer, by node
  std::vector<bool> lasting;            ///< used while loading or fetching
  std::vector<bool> isGiven; ///< by node: only a file explains an edge of it
};

} // namespace

Transformed dropCopies(const Dag &dag) {
  Transformed rewritten;
  while (std::optional<Dag> next =
             CopyDropper(rewritten.dag ? *rewritten.dag : dag).dropOne()) {
    rewritten.dag = std::move(next);
    ++rewritten.changes;
  }
  return rewritten;
}

} // namespace mgpu::planner

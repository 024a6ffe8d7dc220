// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/transform/NodeParts.h"
#include "planner/schedule/transform/Rewrite.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <map>

namespace mgpu::planner {

namespace {

bool covers(const Box &outer, const Box &inner) {
  auto [begin, end] = inner.byteRange();
  auto [outerBegin, outerEnd] = outer.byteRange();
  return outer == inner ||
         (outer.isContiguous() && outerBegin <= begin && end <= outerEnd);
}

class Chunking {
public:
  /// `countOf(collective)`: into how many parts; 1 leaves it.
  Chunking(const Dag &dag, SkippedCandidates &left,
           std::function<uint32_t(uint32_t)> countOf)
      : dag(dag), left(left), countOf(std::move(countOf)),
        touches(dag.buffers.size()), axes(dag.nodes.size()),
        pieces(dag.nodes.size()), cutIn(dag.nodes.size(), 1),
        leader(dag.nodes.size()), partable(dag.nodes.size()) {
    for (uint32_t i = 0; i < dag.nodes.size(); ++i) {
      leader[i] = i;
      for (const BufferUse &use : dag.nodes[i].uses)
        touches[use.buffer.value].push_back({i, &use});
    }
  }

  /// Decides what is cut; how many collectives are.
  uint32_t decide() {
    uint32_t changes = 0;
    for (uint32_t i = 0; i < dag.nodes.size(); ++i) {
      count = countOf(i);
      if (count > 1 && chunk(i)) {
        cutIn[i] = count;
        ++changes;
      }
    }
    return changes;
  }

  /// The nodes that decide() cut, in parts, and all others.
  std::vector<NewNode> parts(const Rewriting &rewriting) const {
    std::vector<NewNode> nodes;
    for (uint32_t i = 0; i < dag.nodes.size(); ++i) {
      const DagNode &node = dag.nodes[i];
      if (!axes[i] && pieces[i].empty())
        nodes.push_back(i);
      else
        for (uint32_t k = 0; k < cutIn[i]; ++k) {
          DagNode part = axes[i] ? kernelPart(node, *axes[i], k, cutIn[i])
                                 : collectivePart(node, pieces[i][k], cutIn[i]);
          part.name += fmt::format(".chunk{}", k);
          const DagNode *const was[] = {&node};
          part.durationUs = frozenPrice(rewriting, was, part);
          nodes.emplace_back(std::move(part), std::vector{i});
        }
    }
    return nodes;
  }

  /// The collectives decide() cut, those that share kernels together; by their
  /// first.
  std::vector<std::vector<NodeId>> groups() {
    std::map<uint32_t, std::vector<NodeId>> byLeader;
    for (uint32_t i = 0; i < dag.nodes.size(); ++i)
      if (!pieces[i].empty())
        byLeader[leaderOf(i)].push_back(NodeId{i});
    std::vector<std::vector<NodeId>> groups;
    for (auto &[first, members] : byLeader)
      groups.push_back(std::move(members));
    std::sort(groups.begin(), groups.end());
    return groups;
  }

private:
  struct Touch {
    uint32_t node;
    const BufferUse *use;
  };
  struct Split {
    uint32_t node;
    unsigned axis;
  };
  struct Partable {
    uint32_t count = 0;
    std::array<std::optional<bool>, 3> along{};
  };

  /// Where the parts of each slice begin, in elements, and where the last ends:
  /// equal ones, or along the parts of kernels that make or use a whole slice.
  std::vector<std::vector<int64_t>>
  waysToCut(uint32_t id, const CollectiveCall &call) const {
    std::vector<std::vector<int64_t>> ways;
    int64_t elements = sliceElements(call);
    if (elements >= int64_t(count) && elements % int64_t(count) == 0) {
      std::vector<int64_t> equal;
      for (uint32_t k = 0; k <= count; ++k)
        equal.push_back(elements / int64_t(count) * k);
      ways.push_back(std::move(equal));
    }
    for (size_t rank = 0; elements > 0 && rank < call.members.size(); ++rank) {
      const CollectiveMember &member = call.members[rank];
      CollectiveSlices slices = slicesOf(call, rank);
      if (slices.send == 1 && sends(call, rank))
        for (const Touch &writer : writersOf(member.send, member.sendBox, id))
          addWays(writer, member.sendBox, ways);
      if (slices.recv == 1 && receives(call, rank))
        for (const Touch &reader : readersOf(member.recv, member.recvBox, id))
          addWays(reader, member.recvBox, ways);
    }
    return ways;
  }
  void addWays(const Touch &touch, const Box &whole,
               std::vector<std::vector<int64_t>> &ways) const {
    if (!whole.isContiguous()) // bytes say nothing of elements there
      return;
    const DagNode &node = dag.nodes[touch.node];
    for (unsigned axis : {2u, 1u, 0u}) {
      if (axes[touch.node]
              ? *axes[touch.node] != axis || cutIn[touch.node] != count
              : !canPartInto(touch.node, axis))
        continue;
      Dim3 grid = *gridOf(node);
      auto [low, high] = whole.byteRange();
      std::vector<int64_t> way{0};
      for (uint32_t k = 0; k < count; ++k) {
        auto [begin, end] =
            boxOfPart(*touch.use, grid, partAlong(grid, axis, k, count))
                .byteRange();
        int64_t at = (k + 1 == count ? high : end) - low;
        if ((k > 0 && begin - low != way.back() * whole.elementBytes) ||
            at % whole.elementBytes != 0 ||
            at <= way.back() * whole.elementBytes || at > high - low)
          break;
        way.push_back(at / whole.elementBytes);
      }
      if (way.size() == count + 1 &&
          std::find(ways.begin(), ways.end(), way) == ways.end())
        ways.push_back(std::move(way));
    }
  }

  /// canPart() into `count` parts, asked once.
  bool canPartInto(uint32_t id, unsigned axis) const {
    Partable &known = partable[id];
    if (known.count != count)
      known = {count, {}};
    std::optional<bool> &answer = known.along[axis];
    if (!answer)
      answer = canPart(dag.nodes[id], axis, count);
    return *answer;
  }

  /// Nodes before `at` whose writes `box` may still hold, the last first.
  std::vector<Touch> writersOf(BufferId buffer, const Box &box,
                               uint32_t at) const {
    std::vector<Touch> found;
    const std::vector<Touch> &list = touches[buffer.value];
    for (size_t k = list.size(); k-- > 0;) {
      const Touch &touch = list[k];
      if (touch.node >= at || !touch.use->writes ||
          overlap(touch.use->box, box) == Overlap::None)
        continue;
      found.push_back(touch);
      if (covers(touch.use->box, box))
        break;
    }
    return found;
  }
  /// Nodes after `at` that may read what it left in `box`.
  std::vector<Touch> readersOf(BufferId buffer, const Box &box,
                               uint32_t at) const {
    std::vector<Touch> found;
    uint32_t end = UINT32_MAX;
    for (const Touch &touch : touches[buffer.value]) {
      if (touch.node <= at || touch.node > end)
        continue;
      if (touch.use->reads && overlap(touch.use->box, box) != Overlap::None)
        found.push_back(touch);
      if (touch.use->writes && covers(touch.use->box, box))
        end = std::min(end, touch.node);
    }
    return found;
  }

  /// Whether the parts of a kernel along `axis` touch of `buffer`, as `writes`
  /// says, each only its own of the `targets`.
  bool keepsTo(const DagNode &node, unsigned axis, BufferId buffer, bool writes,
               const std::vector<Box> &targets) const {
    Dim3 grid = *gridOf(node);
    for (const BufferUse &use : node.uses) {
      if (use.buffer != buffer || !(writes ? use.writes : use.reads))
        continue;
      for (uint32_t k = 0; k < count; ++k) {
        Box mine = boxOfPart(use, grid, partAlong(grid, axis, k, count));
        for (uint32_t j = 0; j < count; ++j)
          if (j != k && overlap(mine, targets[j]) != Overlap::None)
            return false;
      }
    }
    return true;
  }

  /// The axis along which a kernel can be cut so that its parts keep to the
  /// targets; the one it is cut along already, if it is.
  std::optional<unsigned> axisFor(uint32_t id, uint32_t partner,
                                  BufferId buffer, bool writes,
                                  const std::vector<Box> &targets) const {
    const DagNode &node = dag.nodes[id];
    if (node.phase != dag.nodes[partner].phase ||
        (axes[id] && cutIn[id] != count))
      return std::nullopt;
    for (unsigned axis : {2u, 1u, 0u})
      if ((axes[id] ? *axes[id] == axis : canPartInto(id, axis)) &&
          keepsTo(node, axis, buffer, writes, targets))
        return axis;
    return std::nullopt;
  }

  std::vector<Box> boxesOfParts(uint32_t id, const BufferUse &use) const {
    Dim3 grid = *gridOf(dag.nodes[id]);
    std::vector<Box> boxes;
    for (uint32_t k = 0; k < count; ++k)
      boxes.push_back(
          boxOfPart(use, grid, partAlong(grid, *axes[id], k, count)));
    return boxes;
  }

  /// Cuts the kernels too from which those in `work` read (or, downwards,
  /// which read from them), as long as part follows part.
  void extend(std::vector<uint32_t> work, bool upwards) {
    while (!work.empty()) {
      uint32_t id = work.back();
      work.pop_back();
      for (const BufferUse &use : dag.nodes[id].uses) {
        if (!(upwards ? use.reads : use.writes))
          continue;
        std::vector<Box> targets = boxesOfParts(id, use);
        for (const Touch &touch : upwards
                                      ? writersOf(use.buffer, use.box, id)
                                      : readersOf(use.buffer, use.box, id)) {
          if (axes[touch.node]) {
            join(touch.node, id);
            continue;
          }
          if (auto axis =
                  axisFor(touch.node, id, use.buffer, upwards, targets)) {
            cutKernel(touch.node, *axis, id);
            work.push_back(touch.node);
          }
        }
      }
    }
  }

  uint32_t leaderOf(uint32_t node) {
    while (leader[node] != node)
      node = leader[node] = leader[leader[node]];
    return node;
  }
  void join(uint32_t a, uint32_t b) { leader[leaderOf(a)] = leaderOf(b); }
  void cutKernel(uint32_t kernel, unsigned axis, uint32_t with) {
    axes[kernel] = axis;
    cutIn[kernel] = count;
    join(kernel, with);
  }

  /// The call of a collective that may be cut, or nothing and why.
  std::optional<CollectiveCall> candidate(uint32_t id, std::string &why) const {
    const DagNode &node = dag.nodes[id];
    if (workClass(node) != WorkClass::Collective)
      return std::nullopt;
    std::optional<CollectiveCall> call = callOf(node);
    if (std::holds_alternative<OpaqueCall>(node.work)) {
      if (!reduceOf(dag, node, why))
        call.reset();
      if (!call && why.empty())
        why = "only of an all_reduce of one buffer to another are the parts in "
              "a file";
    } else if (call->members.size() < 2) {
      why = "it has one member";
    } else if (node.durationUs) {
      why = "its duration is given, and it is not known of what it would "
            "become";
    }
    return why.empty() ? call : std::nullopt;
  }
  bool chunk(uint32_t id) {
    std::string why;
    if (std::optional<CollectiveCall> call = candidate(id, why)) {
      const std::vector<std::vector<int64_t>> ways = waysToCut(id, *call);
      for (const std::vector<int64_t> &way : ways)
        if (chunk(id, *call, way))
          return true;
      why = ways.empty() ? fmt::format("it does not divide by {}", count)
                         : "no kernel that makes or uses it can be cut with it "
                           "(one of a file says along what: \"splittable\")";
    }
    if (!why.empty())
      left.add(dag, id, std::move(why));
    return false;
  }
  bool chunk(uint32_t id, const CollectiveCall &whole,
             const std::vector<int64_t> &way) {
    const CollectiveCall *call = &whole;
    std::vector<CollectiveCall> parts = cutCollective(*call, way);
    if (parts.empty())
      return false;
    std::vector<Split> producers, consumers;
    bool allProduce = true, allConsume = true;
    for (size_t rank = 0; rank < call->members.size(); ++rank) {
      const CollectiveMember &member = call->members[rank];
      std::vector<Box> from, to;
      for (const CollectiveCall &part : parts) {
        from.push_back(part.members[rank].sendBox);
        to.push_back(part.members[rank].recvBox);
      }
      if (sends(*call, rank)) {
        std::vector<Touch> writers = writersOf(member.send, member.sendBox, id);
        allProduce &= !writers.empty();
        for (const Touch &writer : writers) {
          auto axis = axisFor(writer.node, id, member.send, true, from);
          allProduce &= axis.has_value();
          if (axis)
            producers.push_back({writer.node, *axis});
        }
      }
      if (receives(*call, rank)) {
        bool any = false;
        for (const Touch &reader : readersOf(member.recv, member.recvBox, id))
          if (auto axis = axisFor(reader.node, id, member.recv, false, to)) {
            consumers.push_back({reader.node, *axis});
            any = true;
          }
        allConsume &= any;
      }
    }
    if (!allProduce && !allConsume)
      return false;
    auto take = [&](const std::vector<Split> &splits, bool upwards) {
      std::vector<uint32_t> work;
      for (const Split &split : splits)
        if (axes[split.node]) {
          join(split.node, id);
        } else {
          cutKernel(split.node, split.axis, id);
          work.push_back(split.node);
        }
      extend(std::move(work), upwards);
    };
    if (allProduce)
      take(producers, true);
    if (allConsume)
      take(consumers, false);
    pieces[id] = std::move(parts);
    return true;
  }

  const Dag &dag;
  SkippedCandidates &left;
  std::function<uint32_t(uint32_t)> countOf;
  uint32_t count = 1;                        ///< how many parts are made
  std::vector<std::vector<Touch>> touches;   ///< by buffer, by node
  std::vector<std::optional<unsigned>> axes; ///< along which kernels are cut
  std::vector<std::vector<CollectiveCall>> pieces; ///< parts of collectives
  std::vector<uint32_t> cutIn;                     ///< by node: how many parts
  std::vector<uint32_t> leader;           ///< by node: another one of its group
  mutable std::vector<Partable> partable; ///< by node
};

} // namespace

static Transformed cut(const Rewriting &rewriting,
                       std::function<uint32_t(uint32_t)> countOf) {
  Chunking chunking(rewriting.dag, rewriting.left, std::move(countOf));
  const uint32_t changes = chunking.decide();
  if (changes == 0)
    return {};
  return {changes, replaceNodes(rewriting.dag, NewBuffers(rewriting.dag),
                                chunking.parts(rewriting))};
}

Transformed chunkCollectives(const Rewriting &rewriting, uint32_t count) {
  return cut(rewriting, [&](uint32_t) { return count; });
}

std::vector<std::vector<NodeId>> chunkGroups(const Dag &dag) {
  SkippedCandidates left;
  Chunking chunking(dag, left, [](uint32_t) { return 2u; });
  chunking.decide();
  return chunking.groups();
}

Transformed chunkCollectives(const Rewriting &rewriting,
                             const std::vector<std::vector<NodeId>> &groups,
                             const std::vector<uint32_t> &counts) {
  std::map<uint32_t, uint32_t> byNode;
  for (size_t g = 0; g < groups.size(); ++g)
    for (NodeId node : groups[g])
      byNode[node.value] = counts[g];
  return cut(rewriting, [&](uint32_t node) {
    auto it = byNode.find(node);
    return it == byNode.end() ? 1u : it->second;
  });
}

} // namespace mgpu::planner

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/transform/FileRewrite.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::planner {

namespace {

class Grouping {
public:
  Grouping(Dag &dag, const TransformContext &context, SkippedCandidates &left)
      : dag(dag), left(left), rewrite(dag, context),
        taken(dag.nodes.size(), false) {}

  Result<uint32_t> run() {
    uint32_t changes = 0, count = uint32_t(dag.nodes.size());
    order = rewrite.order();
    for (uint32_t seed = 0; seed < count; ++seed) {
      std::string why;
      if (taken[seed] || !isCandidate(seed, why)) {
        if (!why.empty())
          left.add(dag, seed, std::move(why));
        continue;
      }
      std::vector<uint32_t> group = collect(seed);
      if (group.size() < 2) {
        left.add(dag, seed,
                 "no other small all_reduce is independent of it and alike");
        continue;
      }
      merge(group);
      ++changes;
      order = rewrite.order();
    }
    if (changes > 0)
      MGPU_TRY(rewrite.finish());
    return changes;
  }

private:
  bool isCandidate(uint32_t i, std::string &why) const {
    why.clear();
    auto *call = rewrite.collective(i, CollectiveKind::AllReduce);
    if (!call || rewrite.gone[i])
      return false;
    if (!rewrite.ranksOf(i, &why))
      return false;
    if (call->bytes > bucketMemberBytes)
      why = fmt::format("it has more than {} bytes", bucketMemberBytes);
    return why.empty();
  }
  uint64_t bytesOf(uint32_t i) const {
    return std::get<OpaqueCall>(rewrite.nodes[i].work).bytes;
  }

  /// The seed and later ones that no path leads to from a member; that none
  /// leads from them to a member, `order` says.
  std::vector<uint32_t> collect(uint32_t seed) const {
    std::vector<uint32_t> group{seed};
    uint64_t bytes = bytesOf(seed);
    const DagNode &first = rewrite.nodes[seed];
    uint32_t ranks = std::get<OpaqueCall>(first.work).group;
    std::vector<bool> reached(rewrite.nodes.size(), false);
    reached[seed] = true;
    std::string why;
    for (auto at = std::find(order.begin(), order.end(), seed) + 1;
         at != order.end(); ++at) {
      uint32_t i = *at;
      for (uint32_t from : rewrite.before[i])
        if (reached[from]) {
          reached[i] = true;
          break;
        }
      if (reached[i] || i >= taken.size() || !isCandidate(i, why))
        continue;
      const DagNode &node = rewrite.nodes[i];
      if (std::get<OpaqueCall>(node.work).group != ranks ||
          node.devices != first.devices || node.phase != first.phase ||
          node.durationUs.has_value() != first.durationUs.has_value() ||
          bytes + bytesOf(i) > bucketBytes)
        continue;
      group.push_back(i);
      bytes += bytesOf(i);
      reached[i] = true;
    }
    return group;
  }

  void merge(const std::vector<uint32_t> &group) {
    std::vector<DagNode> members;
    DagNode merged = rewrite.nodes[group.front()];
    auto &call = std::get<OpaqueCall>(merged.work);
    call.bytes = merged.outBytes = 0;
    merged.name = fmt::format("{}.bucket{}", merged.name, group.size());
    merged.uses.clear();
    double weighted = 0;
    for (uint32_t m : group) {
      const DagNode &node = rewrite.nodes[m];
      members.push_back(node);
      call.bytes += bytesOf(m);
      weighted += node.timeFactor * double(bytesOf(m));
      merged.outBytes += node.outBytes;
      for (const BufferUse &use : node.uses)
        if (std::find(merged.uses.begin(), merged.uses.end(), use) ==
            merged.uses.end())
          merged.uses.push_back(use);
    }
    merged.timeFactor = weighted / double(call.bytes);
    merged.durationUs = rewrite.price(members, merged);
    uint32_t id = rewrite.insert(group.back(), std::move(merged), {});
    for (uint32_t m : group) {
      for (uint32_t from : rewrite.before[m])
        rewrite.addEdge(from, id);
      rewrite.follow(m, id);
      rewrite.remove(m);
      taken[m] = true;
    }
  }

  Dag &dag;
  SkippedCandidates &left;
  FileRewrite rewrite;
  std::vector<bool> taken;
  std::vector<uint32_t> order;
};

} // namespace

Result<uint32_t> bucketFileReduces(Dag &dag, const TransformContext &context,
                                   SkippedCandidates &left) {
  return Grouping(dag, context, left).run();
}

} // namespace mgpu::planner

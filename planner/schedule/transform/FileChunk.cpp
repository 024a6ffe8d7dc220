// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/transform/FileRewrite.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <set>

namespace mgpu::planner {

namespace {

class FileChunking {
public:
  /// `countOf(collective)`: into how many parts; 1 leaves it.
  FileChunking(Dag &dag, std::function<uint32_t(uint32_t)> countOf,
               const TransformContext &context, SkippedCandidates &left)
      : dag(dag), countOf(std::move(countOf)), left(left),
        rewrite(dag, context) {}

  Result<uint32_t> run() {
    uint32_t changes = 0, all = uint32_t(dag.nodes.size());
    for (uint32_t i = 0; i < all; ++i) {
      auto *call = std::get_if<OpaqueCall>(&rewrite.nodes[i].work);
      if (!call || !call->isCollective)
        continue;
      std::string why;
      count = countOf(i);
      if (count == 1)
        continue;
      if (std::optional<uint32_t> producer = producerOf(i, why)) {
        change(i, *producer);
        ++changes;
      } else {
        left.add(dag, i, std::move(why));
      }
    }
    if (changes > 0)
      MGPU_TRY(rewrite.finish());
    return changes;
  }

  /// Each all_reduce that can be cut in two is a group of its own.
  std::vector<std::vector<NodeId>> groups() {
    std::vector<std::vector<NodeId>> groups;
    count = 2;
    std::set<uint32_t> producers;
    for (uint32_t i = 0; i < dag.nodes.size(); ++i) {
      auto *call = std::get_if<OpaqueCall>(&dag.nodes[i].work);
      std::string why;
      if (!call || !call->isCollective)
        continue;
      std::optional<uint32_t> producer = producerOf(i, why);
      // A producer is cut with the first of those that need it.
      if (producer && producers.insert(*producer).second)
        groups.push_back({NodeId{i}});
    }
    return groups;
  }

private:
  /// The kernel that can be cut with the collective.
  std::optional<uint32_t> producerOf(uint32_t i, std::string &why) const {
    const DagNode &node = rewrite.nodes[i];
    auto &call = std::get<OpaqueCall>(node.work);
    std::optional<BufferId> whole = rewrite.output(i);
    if (call.kind != CollectiveKind::AllReduce) {
      why = "only of an all_reduce does a part of the bytes need no more than "
            "that part; what the parts of others are is not in the file";
      return std::nullopt;
    }
    if (!rewrite.ranksOf(i, &why))
      return std::nullopt;
    if (rewrite.before[i].size() != 1) {
      why = "it has not one producer";
      return std::nullopt;
    }
    uint32_t p = rewrite.before[i].front();
    const DagNode &producer = rewrite.nodes[p];
    auto *kernel = std::get_if<OpaqueCall>(&producer.work);
    std::optional<BufferId> made = rewrite.output(p);
    if (!kernel || kernel->isCollective || kernel->splittable == 0)
      why = "that the node before it is a kernel that can be cut is not in the "
            "file (\"splittable\")";
    else if (kernel->splittable % count != 0 || call.bytes % count != 0)
      why = fmt::format("what can be cut does not divide by {}", count);
    else if (!whole || !made || node.outBytes != call.bytes ||
             producer.outBytes != call.bytes || *made == *whole ||
             dag.buffer(*made).sizeBytes != call.bytes ||
             dag.buffer(*whole).sizeBytes != call.bytes)
      why = "it does not reduce all that the node before it makes";
    else
      return p;
    return std::nullopt;
  }

  DagNode part(uint32_t id, uint32_t k) {
    DagNode node = rewrite.nodes[id];
    auto &call = std::get<OpaqueCall>(node.work);
    BufferId out = *rewrite.output(id);
    node.name += fmt::format(".chunk{}", k);
    node.outBytes /= count;
    node.flops /= count;
    node.bytesWritten /= count;
    // What a part of a kernel reads is not in the file: maybe all of it.
    for (BufferUse &use : node.uses)
      if (use.buffer == out || call.isCollective)
        use.box = Box::flat(
            int64_t(k *
                    (call.isCollective ? call.bytes / count : node.outBytes)),
            int64_t(call.isCollective ? call.bytes / count : node.outBytes));
    call.bytes /= count;
    call.splittable = 0; // its parts are not cut again
    node.durationUs = rewrite.price({rewrite.nodes[id]}, node);
    return node;
  }

  void change(uint32_t i, uint32_t p) {
    for (uint32_t k = 0; k < count; ++k) {
      uint32_t made = rewrite.insert(p, part(p, k), rewrite.before[p]);
      uint32_t sent = rewrite.insert(i, part(i, k), {made});
      rewrite.follow(i, sent);
      for (uint32_t reader : rewrite.after[p])
        if (reader != i)
          rewrite.addEdge(made, reader);
    }
    rewrite.remove(p);
    rewrite.remove(i);
  }

  Dag &dag;
  std::function<uint32_t(uint32_t)> countOf;
  uint32_t count = 1; ///< number of parts of the collective looked at
  SkippedCandidates &left;
  FileRewrite rewrite;
};

} // namespace

Result<uint32_t> chunkFileReduces(Dag &dag, uint32_t count,
                                  const TransformContext &context,
                                  SkippedCandidates &left) {
  return FileChunking(
             dag, [&](uint32_t) { return count; }, context, left)
      .run();
}

std::vector<std::vector<NodeId>> fileChunkGroups(const Dag &dag) {
  Dag copy = dag;
  SkippedCandidates left;
  return FileChunking(
             copy, [](uint32_t) { return 2u; }, {}, left)
      .groups();
}

Result<uint32_t> chunkFileReduces(Dag &dag, const std::vector<uint32_t> &counts,
                                  const TransformContext &context,
                                  SkippedCandidates &left) {
  std::vector<std::vector<NodeId>> groups = fileChunkGroups(dag);
  std::map<uint32_t, uint32_t> byNode;
  for (size_t g = 0; g < groups.size(); ++g)
    byNode[groups[g].front().value] = counts[g];
  return FileChunking(
             dag,
             [&](uint32_t node) {
               auto it = byNode.find(node);
               return it == byNode.end() ? 1u : it->second;
             },
             context, left)
      .run();
}

} // namespace mgpu::planner

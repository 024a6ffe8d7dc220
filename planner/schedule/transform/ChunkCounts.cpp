// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/transform/ChunkCounts.h"

#include "planner/schedule/transform/Rewrite.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

namespace mgpu::planner {

// The most that timing DAGs may cost: nodes of all of them together, and DAGs.
static constexpr size_t mostNodes = 400000;
static constexpr size_t fewestTrials = 8, mostTrials = 96;

static uint64_t movedBytes(const DagNode &node) {
  if (auto *opaque = std::get_if<OpaqueCall>(&node.work))
    return opaque->bytes;
  uint64_t bytes = 0;
  if (auto *call = std::get_if<CollectiveCall>(&node.work))
    for (const CollectiveMember &member : call->members)
      bytes +=
          uint64_t(member.recvBox.numElements()) * member.recvBox.elementBytes;
  return bytes;
}

std::vector<size_t>
groupsByBytes(const Dag &dag, const std::vector<std::vector<NodeId>> &groups) {
  std::vector<uint64_t> bytes;
  for (const std::vector<NodeId> &group : groups)
    bytes.push_back(std::accumulate(group.begin(), group.end(), uint64_t(0),
                                    [&](uint64_t sum, NodeId node) {
                                      return sum + movedBytes(dag.node(node));
                                    }));
  std::vector<size_t> order(groups.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(bytes[b], a) < std::pair(bytes[a], b);
  });
  return order;
}

Result<ChunkCounts>
findChunkCounts(const Dag &dag, const TransformContext &context,
                const std::function<Result<double>(const Dag &)> &makespanUs) {
  ChunkCounts best;
  std::vector<std::vector<NodeId>> groups = chunkGroups(dag);
  if (groups.empty())
    return best;
  size_t trials =
      std::clamp(mostNodes / (dag.nodes.size() + 1), fewestTrials, mostTrials);
  auto time = [&](const std::vector<uint32_t> &counts) -> Result<double> {
    ++best.trials;
    SkippedCandidates left;
    const Transformed trial =
        std::all_of(counts.begin(), counts.end(),
                    [](uint32_t count) { return count == 1; })
            ? Transformed()
            : chunkCollectives({dag, context.prices, left}, groups, counts);
    Result<double> us = makespanUs(trial.dag ? *trial.dag : dag);
    if (!us && us.error().kind != ErrorKind::Invalid)
      return us;
    return us.value_or(std::numeric_limits<double>::infinity());
  };
  for (uint32_t count : chunkChoices) {
    std::vector<uint32_t> all(groups.size(), count);
    MGPU_TRY_ASSIGN(double us, time(all));
    if (count == 1)
      best.wholeUs = us;
    if (count == 1 || us < best.us) {
      best.counts = std::move(all);
      best.us = us;
      best.uniform = count;
    }
  }
  best.uniformUs = best.us;
  const std::vector<size_t> order = groupsByBytes(dag, groups);
  // One group alone has been tried.
  for (bool changed = groups.size() > 1; changed;) {
    changed = false;
    for (size_t group : order)
      for (uint32_t count : chunkChoices) {
        if (count == best.counts[group] || best.trials >= trials)
          continue;
        std::vector<uint32_t> counts = best.counts;
        counts[group] = count;
        MGPU_TRY_ASSIGN(double us, time(counts));
        if (us < best.us * (1 - 1e-9)) {
          best.counts = std::move(counts);
          best.us = us;
          changed = true;
        }
      }
  }
  return best;
}

std::vector<std::string> explainChunks(const ChunkCounts &counts,
                                       const Dag &dag) {
  std::vector<std::string> lines;
  std::vector<std::vector<NodeId>> groups = chunkGroups(dag);
  if (counts.counts.size() != groups.size() || groups.empty())
    return lines;
  lines.push_back(fmt::format(
      "whole {:.3f} us, all in {} parts {:.3f} us, each its own number {:.3f} "
      "us (first schedules, {} tried)",
      counts.wholeUs, counts.uniform, counts.uniformUs, counts.us,
      counts.trials));
  constexpr size_t most = 20;
  for (size_t g = 0; g < groups.size() && g < most; ++g)
    lines.push_back(fmt::format(
        "group {}: {} part{}: {} \"{}\"{}", g, counts.counts[g],
        counts.counts[g] == 1 ? "" : "s", groups[g].front().value,
        dag.node(groups[g].front()).name,
        groups[g].size() > 1
            ? fmt::format(" and {} that share kernels", groups[g].size() - 1)
            : ""));
  if (groups.size() > most)
    lines.push_back(fmt::format("and {} groups more", groups.size() - most));
  return lines;
}

} // namespace mgpu::planner

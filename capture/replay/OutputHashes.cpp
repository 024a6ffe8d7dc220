// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/replay/OutputHashes.h"

#include <algorithm>
#include <map>

namespace mgpu::capture {

using namespace planner;

void addBox(WordHash &hash, const std::byte *base, const Box &box) {
  auto add = [&](int64_t first, int64_t last) {
    hash.add(base + first, size_t(last - first));
  };
  if (box.isContiguous()) {
    const auto [first, last] = box.byteRange();
    return add(first, last);
  }
  visitRuns(box, add);
}

void OutputHashes::add(const OutputHashes &other) {
  for (size_t k = 0; k < nodes.size(); ++k)
    nodes[k] += other.nodes[k];
  for (size_t k = 0; k < buffers.size(); ++k)
    buffers[k] += other.buffers[k];
}

Result<OutputHashes> OutputHashes::of(const Dag &dag, const Read &read) {
  OutputHashes out{std::vector<uint64_t>(dag.nodes.size()),
                   std::vector<uint64_t>(dag.buffers.size())};
  struct Writing {
    size_t node;
    const Box *box;
  };
  std::vector<std::vector<Writing>> writings(dag.buffers.size());
  for (size_t k = 0; k < dag.nodes.size(); ++k)
    for (const BufferUse &use : dag.nodes[k].uses)
      if (use.writes && isReplayed(dag.nodes[k]))
        writings[use.buffer.value].push_back({k, &use.box});
  for (uint32_t k = 0; k < dag.buffers.size(); ++k) {
    if (writings[k].empty())
      continue;
    MGPU_TRY_ASSIGN(const std::span<const std::byte> bytes, read({k}));
    if (bytes.empty())
      continue;
    if (dag.buffers[k].role != BufferRole::Temporary) {
      WordHash all;
      all.add(bytes.data(), bytes.size());
      out.buffers[k] = all.value();
    }
    for (const Writing &writing : writings[k]) {
      WordHash hash;
      addBox(hash, bytes.data(), *writing.box);
      out.nodes[writing.node] += hash.value() * (2 * uint64_t(k) + 1);
    }
  }
  return out;
}

std::vector<bool> replayWrites(const Dag &dag) {
  std::vector<bool> out(dag.buffers.size());
  for (const DagNode &node : dag.nodes)
    for (const BufferUse &use : node.uses)
      if (use.writes && isReplayed(node))
        out[use.buffer.value] = true;
  return out;
}

namespace {

/// Ranges of bytes of one memory.
class Ranges {
public:
  bool meets(int64_t first, int64_t last) const {
    const auto after = ends.upper_bound(first);
    return after != ends.end() && after->second < last;
  }
  void add(int64_t first, int64_t last) {
    auto at = ends.lower_bound(first);
    while (at != ends.end() && at->second <= last) {
      first = std::min(first, at->second);
      last = std::max(last, at->first);
      at = ends.erase(at);
    }
    ends[last] = first;
  }

private:
  std::map<int64_t, int64_t> ends; ///< to the begin
};

} // namespace

std::vector<bool> lastingOutputs(const Dag &dag, const Plan &plan) {
  std::vector<std::optional<uint64_t>> offsets(dag.buffers.size());
  for (const Placement &placement : plan.placements)
    offsets[placement.buffer.value] = placement.offset;
  // A device's arena, or a buffer that has memory of its own.
  std::map<std::pair<bool, uint64_t>, Ranges> taken;
  auto inMemory = [&](const BufferUse &use) {
    const std::optional<uint64_t> offset = offsets[use.buffer.value];
    const auto [first, last] = use.box.byteRange();
    const auto from = int64_t(offset.value_or(0));
    const uint64_t memory = offset
                                ? uint64_t(dag.buffer(use.buffer).device.value)
                                : use.buffer.value;
    return std::tuple<Ranges &, int64_t, int64_t>(
        taken[{offset.has_value(), memory}], from + int64_t(first),
        from + int64_t(last));
  };
  std::vector<bool> lasts(dag.nodes.size());
  for (const Phase phase : {Phase::Epilogue, Phase::Replay, Phase::Prologue})
    for (size_t k = plan.steps.size(); k-- > 0;) {
      const DagNode &node = dag.node(plan.steps[k].node);
      if (node.phase != phase)
        continue;
      bool isThere = false, isWhole = true;
      for (const BufferUse &use : node.uses)
        if (use.writes && use.box.numElements() > 0) {
          const auto &[ranges, first, last] = inMemory(use);
          isThere = true;
          isWhole &= !ranges.meets(first, last);
        }
      for (const BufferUse &use : node.uses)
        if (use.writes && use.box.numElements() > 0) {
          const auto &[ranges, first, last] = inMemory(use);
          ranges.add(first, last);
        }
      lasts[plan.steps[k].node.value] = isThere && isWhole;
    }
  return lasts;
}

} // namespace mgpu::capture

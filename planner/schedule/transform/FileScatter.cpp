// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/transform/FileRewrite.h"

#include <algorithm>

namespace mgpu::planner {

namespace {

/// What the file says of an all_reduce that every rank takes its own part of,
/// as XLA's partitioner writes it: slices at offsets that are looked up in a
/// table of one entry per rank.
class Scattering {
public:
  Scattering(Dag &dag, const TransformContext &context, SkippedCandidates &left)
      : dag(dag), left(left), rewrite(dag, context) {}

  Result<uint32_t> run() {
    uint32_t changes = 0, count = uint32_t(dag.nodes.size());
    for (uint32_t i = 0; i < count; ++i) {
      if (!rewrite.collective(i, CollectiveKind::AllReduce))
        continue;
      std::string why;
      if (isSliced(i, why)) {
        change(i);
        ++changes;
      } else {
        left.add(dag, i, std::move(why));
      }
    }
    if (changes > 0)
      MGPU_TRY(rewrite.finish());
    return changes;
  }

private:
  /// A scalar that is read from a table of `ranks` like it, by a kernel that
  /// depends on nothing: on the rank alone.
  bool isRankOffset(uint32_t node, uint32_t ranks) const {
    const DagNode &offset = rewrite.nodes[node];
    auto *call = std::get_if<OpaqueCall>(&offset.work);
    return call && call->isSlice && rewrite.before[node].empty() &&
           (offset.outBytes == 4 || offset.outBytes == 8) &&
           offset.bytesRead == offset.outBytes * ranks;
  }

  bool isSliced(uint32_t i, std::string &why) const {
    const DagNode &node = rewrite.nodes[i];
    uint64_t bytes = std::get<OpaqueCall>(node.work).bytes;
    std::optional<uint32_t> ranks = rewrite.ranksOf(i, &why);
    std::optional<BufferId> whole = rewrite.output(i);
    if (!ranks)
      return false;
    if (!dag.spmd)
      why = "the file is not spmd: which part each device takes is not in it";
    else if (node.outBytes != bytes || !whole)
      why = "its output is not what it reduces";
    else if (rewrite.after[i].empty())
      why = "its output is a result";
    else if (bytes % *ranks != 0)
      why = "its bytes do not divide by its ranks";
    if (!why.empty())
      return false;
    std::vector<uint32_t> offsets;
    for (uint32_t s : rewrite.after[i]) {
      const DagNode &slice = rewrite.nodes[s];
      auto *call = std::get_if<OpaqueCall>(&slice.work);
      std::optional<BufferId> part = rewrite.output(s);
      std::vector<uint32_t> others = rewrite.before[s];
      std::erase(others, i);
      std::sort(others.begin(), others.end());
      // More work than an operation per byte is more than a slice.
      if (!call || call->isCollective || !call->isSlice ||
          slice.flops > double(slice.outBytes))
        why = "a node that reads it is not a slice";
      else if (slice.outBytes * *ranks != bytes)
        why = "a slice of it is not one part per rank";
      else if (!part || part == whole ||
               rewrite.users[part->value].front() != s)
        why = "a slice of it writes where others do";
      else if (others.empty() ||
               !std::all_of(others.begin(), others.end(), [&](uint32_t o) {
                 return isRankOffset(o, *ranks);
               }))
        why = "that each rank takes another part is not in the file: no table "
              "of one offset per rank";
      else if (!offsets.empty() && offsets != others)
        why = "its slices have several offsets";
      if (!why.empty())
        return false;
      offsets = std::move(others);
    }
    // Nobody else may look at the whole.
    for (uint32_t user : rewrite.users[whole->value])
      if (user != i && rewrite.nodes[user].uses.size() > 0 &&
          std::find(rewrite.after[i].begin(), rewrite.after[i].end(), user) ==
              rewrite.after[i].end()) {
        why = "its buffer is used by others";
        return false;
      }
    return true;
  }

  /// The slices go: what they would copy is what each rank receives.
  void change(uint32_t i) {
    std::vector<uint32_t> slices = rewrite.after[i];
    DagNode scatter = rewrite.nodes[i];
    BufferId whole = *rewrite.output(i), part = *rewrite.output(slices.front());
    std::get<OpaqueCall>(scatter.work).kind = CollectiveKind::ReduceScatter;
    scatter.name += ".scatter";
    scatter.outBytes = rewrite.nodes[slices.front()].outBytes;
    std::erase_if(scatter.uses, [&](const BufferUse &use) {
      return use.buffer == whole && use.writes && !use.reads;
    });
    for (BufferUse &use : scatter.uses)
      use.writes = false;
    scatter.uses.push_back(
        {part, Box::flat(0, int64_t(scatter.outBytes)), false, true});
    scatter.durationUs = rewrite.price({rewrite.nodes[i]}, scatter);
    for (uint32_t s : slices) {
      rewrite.follow(s, i);
      BufferId copy = *rewrite.output(s);
      if (copy != part) {
        if (dag.buffer(copy).role == BufferRole::Resident)
          dag.buffers[part.value].role = BufferRole::Resident;
        for (uint32_t user : rewrite.users[copy.value])
          for (BufferUse &use : rewrite.nodes[user].uses)
            if (use.buffer == copy)
              use.buffer = part;
      }
      rewrite.remove(s);
    }
    rewrite.nodes[i] = std::move(scatter);
  }

  Dag &dag;
  SkippedCandidates &left;
  FileRewrite rewrite;
};

} // namespace

Result<uint32_t> scatterFileReduces(Dag &dag, const TransformContext &context,
                                    SkippedCandidates &left) {
  return Scattering(dag, context, left).run();
}

} // namespace mgpu::planner

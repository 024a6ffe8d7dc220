// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/transform/FileRewrite.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::planner {

Result<uint32_t> splitFileReduces(Dag &dag, const TransformContext &context,
                                  SkippedCandidates &left) {
  FileRewrite rewrite(dag, context);
  uint32_t changes = 0, count = uint32_t(dag.nodes.size());
  for (uint32_t i = 0; i < count; ++i) {
    auto *call = rewrite.collective(i, CollectiveKind::AllReduce);
    if (!call)
      continue;
    std::string why;
    std::optional<uint32_t> ranks = rewrite.ranksOf(i, &why);
    std::optional<BufferId> whole = rewrite.output(i);
    if (ranks && (!whole || rewrite.nodes[i].outBytes != call->bytes))
      why = "its output is not what it reduces";
    else if (ranks && call->bytes % *ranks != 0)
      why = "its bytes do not divide by its ranks";
    if (!why.empty()) {
      left.add(dag, i, std::move(why));
      continue;
    }
    DagNode scatter = rewrite.nodes[i], gather = scatter;
    BufferId part =
        rewrite.addBuffer(fmt::format("{}:{}.part", i, scatter.name),
                          scatter.devices.front(), call->bytes / *ranks);
    Box all = Box::flat(0, int64_t(dag.buffer(part).sizeBytes));
    std::get<OpaqueCall>(scatter.work).kind = CollectiveKind::ReduceScatter;
    scatter.name += ".scatter";
    scatter.outBytes = dag.buffer(part).sizeBytes;
    std::erase_if(scatter.uses,
                  [](const BufferUse &use) { return !use.reads; });
    for (BufferUse &use : scatter.uses)
      use.writes = false;
    scatter.uses.push_back({part, all, false, true});
    scatter.durationUs = rewrite.price({rewrite.nodes[i]}, scatter);
    std::get<OpaqueCall>(gather.work).kind = CollectiveKind::AllGather;
    gather.name += ".gather";
    std::erase_if(gather.uses,
                  [](const BufferUse &use) { return !use.writes; });
    for (BufferUse &use : gather.uses)
      use.reads = false;
    gather.uses.push_back({part, all, true, false});
    gather.durationUs = rewrite.price({rewrite.nodes[i]}, gather);
    std::vector<uint32_t> readers = rewrite.after[i];
    uint32_t second = rewrite.insert(i, std::move(gather), {i});
    for (uint32_t reader : readers) {
      rewrite.addEdge(second, reader);
      std::erase(rewrite.before[reader], i);
      std::erase(rewrite.after[i], reader);
    }
    rewrite.nodes[i] = std::move(scatter);
    ++changes;
  }
  if (changes > 0)
    MGPU_TRY(rewrite.finish());
  return changes;
}

} // namespace mgpu::planner

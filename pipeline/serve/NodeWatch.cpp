// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/serve/NodeWatch.h"

#include "support/SharedLibrary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mgpu::pipeline::serve {

const Nvtx &Nvtx::get() {
  static const Nvtx found = [] {
    Nvtx out;
    const SharedLibrary library = openToolkitLibrary(
        {"libnvToolsExt.so.1", "libnvtx3interop.so.1", "libnvtx3interop.so"});
    if (!library.handle)
      return out;
    EntryPoints points(library.handle);
    points.take("nvtxRangePushA", out.push);
    points.take("nvtxRangePop", out.pop);
    return points.missing.empty() ? out : Nvtx();
  }();
  return found;
}

NodeWatch::NodeWatch(const planner::Dag &dag, bool marks) {
  names.reserve(dag.nodes.size());
  for (const planner::DagNode &node : dag.nodes)
    names.push_back(node.name);
  if (marks)
    nvtx = Nvtx::get();
}

bool NodeWatch::begin(planner::NodeId node, uint32_t queue) {
  if (isStopped.load(std::memory_order_relaxed))
    return false;
  current[queue % current.size()].store(node.value + 1,
                                        std::memory_order_relaxed);
  if (nvtx.push)
    nvtx.push(names[node.value].c_str());
  return true;
}

void NodeWatch::end(planner::NodeId, uint32_t queue) {
  if (nvtx.push)
    nvtx.pop();
  current[queue % current.size()].store(0, std::memory_order_relaxed);
}

std::string NodeWatch::running() const {
  std::vector<std::string> quoted;
  for (const auto &each : current)
    if (const uint32_t node = each.load(std::memory_order_relaxed))
      quoted.push_back(fmt::format("'{}'", names[node - 1]));
  if (quoted.empty())
    return "no node";
  return fmt::format("node{} {}", quoted.size() == 1 ? "" : "s",
                     fmt::join(quoted, ", "));
}

} // namespace mgpu::pipeline::serve

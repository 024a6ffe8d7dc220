// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dag/LaunchFacts.h"

#include <algorithm>
#include <bit>

namespace mgpu::planner {

bool LaunchFacts::implies(const LaunchFacts &other) const {
  if (alignment < other.alignment)
    return false;
  for (size_t k = 0; k < other.unwritten.size(); ++k)
    if (other.unwritten[k] && !(k < unwritten.size() && unwritten[k]))
      return false;
  return true;
}

/// Whether a node writes nothing of what it reads of a buffer.
static bool keepsWhatItReads(const DagNode &node, BufferId buffer) {
  for (const BufferUse &write : node.uses)
    for (const BufferUse &read : node.uses)
      if (write.writes && read.reads && write.buffer == buffer &&
          read.buffer == buffer &&
          overlap(write.box, read.box) != Overlap::None)
        return false;
  return true;
}

static uint32_t alignmentOf(const Dag &dag, const KernelArgument &argument) {
  if (dag.buffer(std::get<BufferId>(argument.value)).device.isHost())
    return 1;
  const auto offset = uint64_t(argument.offsetBytes);
  return uint32_t(uint64_t(1)
                  << std::countr_zero(offset | mostLaunchAlignment));
}

std::vector<LaunchFacts> launchFacts(const Dag &dag) {
  std::vector<LaunchFacts> facts(dag.kernels.size());
  const std::vector<Dim3> grids = largestGrids(dag);
  for (size_t k = 0; k < facts.size(); ++k)
    facts[k].maxGrid = grids[k];
  std::vector<bool> isCalled(facts.size());
  for (const DagNode &node : dag.nodes) {
    auto *call = std::get_if<KernelCall>(&node.work);
    if (!call)
      continue;
    const size_t kernel = call->kernel.value;
    LaunchFacts &all = facts[kernel];
    if (!isCalled[kernel]) {
      all.alignment = mostLaunchAlignment;
      all.unwritten.assign(call->arguments.size(), true);
    }
    isCalled[kernel] = true;
    all.unwritten.resize(
        std::min(all.unwritten.size(), call->arguments.size()));
    for (size_t k = 0; k < call->arguments.size(); ++k) {
      const KernelArgument &argument = call->arguments[k];
      auto *buffer = std::get_if<BufferId>(&argument.value);
      if (buffer)
        all.alignment = std::min(all.alignment, alignmentOf(dag, argument));
      if (k < all.unwritten.size())
        all.unwritten[k] = all.unwritten[k] && buffer != nullptr &&
                           keepsWhatItReads(node, *buffer);
    }
  }
  return facts;
}

} // namespace mgpu::planner

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
  for (size_t k = 0; k < other.steadyBytes.size(); ++k)
    if (other.steadyBytes[k] > (k < steadyBytes.size() ? steadyBytes[k] : 0))
      return false; // what is fetched might lie outside of its buffer
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
  const Buffer &buffer = dag.buffer(std::get<BufferId>(argument.value));
  if (buffer.device.isHost())
    return 1;
  const uint64_t begin =
      isInArena(buffer) ? mostLaunchAlignment : sizeBytes(buffer.elementType);
  return uint32_t(uint64_t(1)
                  << std::countr_zero(uint64_t(argument.offsetBytes) | begin |
                                      mostLaunchAlignment));
}

/// Buffers that something writes while the program is replayed.
static std::vector<bool> writtenInReplays(const Dag &dag) {
  std::vector<bool> written(dag.buffers.size());
  for (const DagNode &node : dag.nodes)
    for (const BufferUse &use : node.uses)
      if (use.writes && node.phase != Phase::Load && node.phase != Phase::Fetch)
        written[use.buffer.value] = true;
  return written;
}

/// From the argument's address to the last byte read, where most are read.
static uint64_t readBytes(const DagNode &node, BufferId buffer,
                          uint64_t first) {
  uint64_t bytes = 0;
  for (const BufferUse &use : node.uses) {
    if (use.buffer != buffer || !use.reads)
      continue;
    auto [low, high] = use.box.byteRange();
    const uint64_t touched =
        uint64_t(use.box.numElements()) * use.box.elementBytes;
    if (uint64_t(low) == first && touched >= uint64_t(high - low) / 2)
      bytes = std::max(bytes, uint64_t(high - low));
  }
  return bytes;
}

/// A launch that reads less has it soon enough.
static constexpr uint64_t fewBytes = 64 << 10;

std::vector<LaunchFacts> launchFacts(const Dag &dag) {
  std::vector<LaunchFacts> facts(dag.kernels.size());
  const std::vector<Dim3> grids = largestGrids(dag);
  for (size_t k = 0; k < facts.size(); ++k)
    facts[k].maxGrid = grids[k];
  std::vector<bool> isCalled(facts.size());
  const std::vector<bool> written = writtenInReplays(dag);
  for (const DagNode &node : dag.nodes) {
    auto *call = std::get_if<KernelCall>(&node.work);
    if (!call)
      continue;
    const size_t kernel = call->kernel.value;
    LaunchFacts &all = facts[kernel];
    if (!isCalled[kernel]) {
      all.alignment = mostLaunchAlignment;
      all.unwritten.assign(call->arguments.size(), true);
      all.steadyBytes.assign(call->arguments.size(), UINT64_MAX);
    }
    isCalled[kernel] = true;
    all.unwritten.resize(
        std::min(all.unwritten.size(), call->arguments.size()));
    all.steadyBytes.resize(all.unwritten.size());
    for (size_t k = 0; k < call->arguments.size(); ++k) {
      const KernelArgument &argument = call->arguments[k];
      auto *buffer = std::get_if<BufferId>(&argument.value);
      if (buffer)
        all.alignment = std::min(all.alignment, alignmentOf(dag, argument));
      if (k >= all.unwritten.size())
        continue;
      all.unwritten[k] = all.unwritten[k] && buffer != nullptr &&
                         keepsWhatItReads(node, *buffer);
      const uint64_t steady =
          buffer && !written[buffer->value] &&
                  !dag.buffer(*buffer).device.isHost()
              ? readBytes(node, *buffer, uint64_t(argument.offsetBytes))
              : 0;
      all.steadyBytes[k] =
          std::min(all.steadyBytes[k], steady < fewBytes ? 0 : steady);
    }
  }
  return facts;
}

} // namespace mgpu::planner

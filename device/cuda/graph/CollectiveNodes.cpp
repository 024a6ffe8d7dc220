// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives between logical devices of one GPU: the GPU reaches the memory
// of them all, so each is a kernel or two of our own. (NCCL refuses two ranks
// on one GPU.)
#include "device/cuda/graph/CudaGraph.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::device {

Result<uint32_t> CudaGraph::addReduction(const CollectiveNodeParams &params,
                                         const CollectiveSteps &steps,
                                         const Specs &after) {
  const auto &reductions = steps.reductions;
  uint64_t width = sizeBytes(params.elementType);
  const ElementwiseReduction &front = reductions[0];
  DeviceReduction reduction{};
  reduction.count = front.count;
  reduction.slices = uint32_t(reductions.size());
  reduction.numInputs = uint32_t(front.inputs.size());
  uint64_t bits = reduction.slices > 1 ? front.count * width : 0;
  for (size_t r = 0; r < front.inputs.size(); ++r)
    bits |= reduction.inputs[r] = uint64_t(uintptr_t(front.inputs[r]));
  for (const ElementwiseReduction &slice : reductions)
    for (std::byte *output : slice.outputs)
      bits |= reduction.outputs[reduction.numOutputs++] =
          uint64_t(uintptr_t(output));
  reduction.isPacked = bits % 16 == 0;
  MGPU_TRY_ASSIGN(
      CUkernel kernel,
      state->deviceKernel(
          reductionKernelName(params.elementType, params.reduction),
          reductionKernelSource(params.elementType, params.reduction)));
  KernelLaunch launch;
  launch.kernel = kernel;
  launch.isUrgent = true;
  launch.block = {deviceKernelThreads, 1, 1};
  uint64_t perThread = reduction.isPacked ? 16 / width : 1;
  uint64_t blocks = front.count / (deviceKernelThreads * perThread) + 1;
  launch.grid = {
      uint32_t(std::min<uint64_t>(blocks, 8u * state->multiprocessors)),
      reduction.slices, 1};
  launch.addParameter(&reduction, sizeof reduction);
  return append(std::move(launch), after);
}

Result<GraphNodeId>
CudaGraph::addCollective(const CollectiveNodeParams &params,
                         std::span<const GraphNodeId> dependencies) {
  if (state->communicators)
    return addNccl(params, dependencies);
  uint32_t first = uint32_t(spec->nodes.size());
  auto add = [&]() -> Result<void> {
    for (const CollectiveMemberParams &member : params.members) {
      if (!state->isHere(member.device))
        return fail(ErrorKind::Invalid,
                    fmt::format("a member is on device {}, but the devices are "
                                "{}",
                                member.device.value, state->devicesText()));
      // A side the kind does not use may be left empty.
      for (auto [base, box] :
           {std::pair{member.send, &member.sendBox},
            std::pair{(const std::byte *)member.recv, &member.recvBox}})
        if (base) {
          MGPU_TRY(checkBox(*box));
          MGPU_TRY(state->memory.check(base, *box));
        }
    }
    if (params.members.size() > maxReductionRanks)
      return fail(ErrorKind::Unsupported,
                  fmt::format("{} ranks, more than the {} devices of a GPU",
                              params.members.size(), maxReductionRanks));
    // The staging is known only once the steps are, and where it lies decides
    // nothing: once with addresses that nothing has, to measure, then for real.
    uint64_t bytes = 0;
    auto measure = [&](uint64_t size) -> Result<std::byte *> {
      bytes += (size + 255) / 256 * 256;
      return reinterpret_cast<std::byte *>(uintptr_t(256));
    };
    const std::byte *zeros = nullptr;
    if (params.kind == CollectiveKind::Permute) {
      MGPU_TRY_ASSIGN(zeros, state->zeros());
    }
    MGPU_TRY(collectiveSteps(params, {measure, zeros, true}));
    std::byte *staging = nullptr;
    if (bytes > 0) {
      MGPU_TRY_ASSIGN(staging, stage(bytes, "a collective's staging buffer"));
    }
    auto take = [&](uint64_t size) -> Result<std::byte *> {
      return std::exchange(staging, staging + (size + 255) / 256 * 256);
    };
    MGPU_TRY_ASSIGN(CollectiveSteps steps,
                    collectiveSteps(params, {take, zeros, true}));
    Specs after = endsOf(dependencies);
    if (!steps.stageIn.empty()) {
      MGPU_TRY_ASSIGN(uint32_t staged, addMoves(steps.stageIn, after));
      after = {staged};
    }
    if (!steps.reductions.empty()) {
      MGPU_TRY_ASSIGN(uint32_t reduced, addReduction(params, steps, after));
      after = {reduced};
    }
    if (!steps.moves.empty()) {
      MGPU_TRY(addMoves(steps.moves, after));
    }
    if (spec->nodes.size() == first)
      join({}, after);
    return {};
  };
  MGPU_TRY(checkNode(params.name, {0}, false, dependencies));
  if (Result<void> ok = add(); !ok) {
    rollBack(first);
    return failIn(fmt::format("node '{}': ", params.name), ok.error());
  }
  return finish(params.name, params.members[0].device, first);
}

} // namespace mgpu::device

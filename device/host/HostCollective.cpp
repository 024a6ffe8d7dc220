// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/host/HostCollective.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <new>

namespace mgpu::device {

/// Half of a level-one cache holds the accumulator and one input.
static constexpr size_t chunkBytes = 16384;

const std::byte Collective::zeros[8] = {};

static Result<std::vector<StridedCopy>>
copiesOf(const std::vector<BoxMove> &moves) {
  std::vector<StridedCopy> copies;
  for (const BoxMove &move : moves) {
    MGPU_TRY_ASSIGN(StridedCopy copy,
                    StridedCopy::create(move.destination, move.destinationBox,
                                        move.source, move.sourceBox));
    copies.push_back(std::move(copy));
  }
  return copies;
}

Result<std::byte *> Collective::stage(uint64_t bytes) {
  std::unique_ptr<std::byte[]> memory(
      new (std::nothrow) std::byte[std::max<uint64_t>(bytes, 1)]);
  if (!memory)
    return fail(ErrorKind::Absent,
                fmt::format("no memory for the {} bytes that a collective must "
                            "keep while it runs",
                            bytes));
  staging.push_back(std::move(memory));
  return staging.back().get();
}

Result<void> Collective::take(CollectiveSteps steps) {
  MGPU_TRY_ASSIGN(stageIn, copiesOf(steps.stageIn));
  MGPU_TRY_ASSIGN(moves, copiesOf(steps.moves));
  reductions = std::move(steps.reductions);
  if (!reductions.empty())
    accumulator = std::make_unique<std::byte[]>(chunkBytes);
  return {};
}

Result<std::unique_ptr<Collective>>
Collective::create(const CollectiveNodeParams &params) {
  auto out = std::make_unique<Collective>();
  auto stage = [&](uint64_t bytes) { return out->stage(bytes); };
  MGPU_TRY_ASSIGN(CollectiveSteps steps,
                  collectiveSteps(params, {stage, zeros, false}));
  out->elementBytes = sizeBytes(params.elementType);
  out->function = reduceFunction(params.elementType, params.reduction);
  MGPU_TRY(out->take(std::move(steps)));
  return out;
}

Result<std::unique_ptr<Collective>>
Collective::create(std::vector<BoxMove> moves) {
  auto out = std::make_unique<Collective>();
  auto stage = [&](uint64_t bytes) { return out->stage(bytes); };
  MGPU_TRY_ASSIGN(CollectiveSteps steps,
                  stepsOf(std::move(moves), {stage, zeros, false}));
  MGPU_TRY(out->take(std::move(steps)));
  return out;
}

void Collective::reduce(const ElementwiseReduction &reduction) {
  size_t chunk = chunkBytes / elementBytes;
  for (size_t first = 0; first < reduction.count; first += chunk) {
    size_t count = std::min(chunk, reduction.count - first);
    size_t offset = first * elementBytes, bytes = count * elementBytes;
    std::memcpy(accumulator.get(), reduction.inputs[0] + offset, bytes);
    for (size_t r = 1; r < reduction.inputs.size(); ++r)
      function(accumulator.get(), reduction.inputs[r] + offset, count);
    for (std::byte *output : reduction.outputs)
      std::memcpy(output + offset, accumulator.get(), bytes);
  }
}

void Collective::run() {
  for (StridedCopy &copy : stageIn)
    copy.run();
  for (const ElementwiseReduction &reduction : reductions)
    reduce(reduction);
  for (StridedCopy &copy : moves)
    copy.run();
}

} // namespace mgpu::device

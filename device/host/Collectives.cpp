// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/host/Collectives.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <new>

namespace mgpu::device {

/// Half of a level-one cache holds the accumulator and one input.
static constexpr size_t chunkBytes = 16384;

static constexpr std::byte zeros[8] = {};

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

Result<std::unique_ptr<Collective>>
Collective::create(const CollectiveNodeParams &params) {
  auto out = std::unique_ptr<Collective>(new Collective);
  auto stage = [&](uint64_t bytes) -> Result<std::byte *> {
    std::unique_ptr<std::byte[]> memory(
        new (std::nothrow) std::byte[std::max<uint64_t>(bytes, 1)]);
    if (!memory)
      return fail(ErrorKind::Absent,
                  fmt::format("no memory for the {} bytes that {} must keep "
                              "while it runs",
                              bytes, toString(params.kind)));
    out->staging.push_back(std::move(memory));
    return out->staging.back().get();
  };
  MGPU_TRY_ASSIGN(CollectiveSteps steps,
                  collectiveSteps(params, {stage, zeros, false}));
  MGPU_TRY_ASSIGN(out->stageIn, copiesOf(steps.stageIn));
  MGPU_TRY_ASSIGN(out->moves, copiesOf(steps.moves));
  out->reductions = std::move(steps.reductions);
  out->elementBytes = sizeBytes(params.elementType);
  out->function = reduceFunction(params.elementType, params.reduction);
  if (!out->reductions.empty())
    out->accumulator = std::make_unique<std::byte[]>(chunkBytes);
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

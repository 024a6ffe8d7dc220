// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/lower/ThreadValues.h"

#include "kernels/lower/SubgroupBarrier.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <optional>

using namespace mlir;

namespace mgpu::kernels {

static uint64_t along(Dim3 size, gpu::Dimension dimension) {
  return std::array{size.x, size.y, size.z}[unsigned(dimension)];
}

/// What the query `op` gives thread `at`, which is number `linear`.
static std::optional<uint64_t> answer(Operation *op, Dim3 at, uint64_t linear,
                                      Dim3 block) {
  if (auto id = dyn_cast<gpu::ThreadIdOp>(op))
    return along(at, id.getDimension());
  if (auto size = dyn_cast<gpu::BlockDimOp>(op))
    return along(block, size.getDimension());
  if (isa<gpu::LaneIdOp>(op))
    return linear % subgroupSize;
  if (isa<gpu::SubgroupIdOp>(op))
    return linear / subgroupSize;
  if (isa<gpu::NumSubgroupsOp>(op))
    return (block.volume() + subgroupSize - 1) / subgroupSize;
  if (isa<gpu::SubgroupSizeOp>(op))
    return subgroupSize;
  return std::nullopt;
}

const std::vector<Attribute> &ThreadValues::of(Value value) {
  auto at = known.find(value);
  if (at != known.end())
    return *at->second;
  auto found = std::make_unique<std::vector<Attribute>>(find(value));
  return *(known[value] = std::move(found));
}

std::vector<Attribute> ThreadValues::find(Value value) {
  const size_t numThreads = block.volume();
  Attribute constant;
  if (matchPattern(value, m_Constant(&constant)))
    return std::vector(numThreads, constant);
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumResults() != 1 || op->getNumRegions() != 0 ||
      !isMemoryEffectFree(op))
    return {};
  std::vector<Attribute> result;
  if (isa<gpu::GPUDialect>(op->getDialect())) {
    for (uint64_t thread = 0; thread < numThreads; ++thread) {
      const Dim3 at{uint32_t(thread % block.x),
                    uint32_t(thread / block.x % block.y),
                    uint32_t(thread / block.x / block.y)};
      auto number = answer(op, at, thread, block);
      if (!number)
        return {};
      result.push_back(IntegerAttr::get(value.getType(), int64_t(*number)));
    }
    return result;
  }
  std::vector<std::vector<Attribute>> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(of(operand));
    if (operands.back().empty())
      return {};
  }
  for (size_t thread = 0; thread < numThreads; ++thread) {
    SmallVector<Attribute> given;
    for (const std::vector<Attribute> &each : operands)
      given.push_back(each[thread]);
    SmallVector<OpFoldResult> folded;
    if (failed(op->fold(given, folded)) || folded.size() != 1)
      return {};
    Attribute made = dyn_cast<Attribute>(folded[0]);
    if (!made) { // one of its operands
      auto from = llvm::find(op->getOperands(), cast<Value>(folded[0]));
      if (from == op->operand_end())
        return {};
      made = given[from - op->operand_begin()];
    }
    result.push_back(made);
  }
  return result;
}

} // namespace mgpu::kernels

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/shard/ShardPatterns.h"
#include "dialect/conversion/spmd/Reshard.h"
#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_CONVERTSHARDTOSPMD
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

ArrayRef<int64_t> gridOf(Operation *op, FlatSymbolRefAttr name) {
  return SymbolTable::lookupNearestSymbolFrom<shard::GridOp>(op, name)
      .getShape();
}

SmallVector<int64_t> axesOf(ArrayRef<int16_t> axes) {
  return SmallVector<int64_t>(axes.begin(), axes.end());
}

std::optional<SmallVector<int64_t>> foldIndices(ArrayRef<int64_t> fixed,
                                                ValueRange dynamic) {
  SmallVector<int64_t> folded(fixed);
  size_t next = 0;
  for (int64_t &each : folded) {
    if (!ShapedType::isDynamic(each))
      continue;
    APInt value;
    if (!matchPattern(dynamic[next++], m_ConstantInt(&value)))
      return std::nullopt;
    each = value.getSExtValue();
  }
  return folded;
}

int64_t linearIndex(ArrayRef<int64_t> sizes, ArrayRef<int64_t> index) {
  int64_t linear = 0;
  for (auto [size, at] : llvm::zip(sizes, index))
    linear = linear * size + at;
  return linear;
}

namespace {

LogicalResult convert(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<shard::GridShapeOp, shard::ProcessMultiIndexOp,
            shard::ProcessLinearIndexOp, shard::NeighborsLinearIndicesOp,
            shard::ShardShapeOp>([](auto each) { return convertIndices(each); })
      .Case<shard::AllGatherOp, shard::AllReduceOp, shard::ReduceOp,
            shard::ReduceScatterOp, shard::AllToAllOp, shard::AllSliceOp,
            shard::BroadcastOp, shard::GatherOp, shard::ScatterOp>(
          [](auto each) { return convertCollective(each); })
      .Case<shard::ShiftOp, shard::SendOp, shard::RecvOp>(
          [](auto each) { return convertExchange(each); })
      .Case([](shard::UpdateHaloOp each) { return convertHalo(each); })
      .Case([](shard::ShardOp each) { return convertShard(each); })
      .Default(success());
}

/// Sizes that the dialect's verifier leaves open. The layout's own says the
/// rest.
LogicalResult checkGrid(shard::GridOp grid) {
  if (llvm::any_of(grid.getShape(), ShapedType::isDynamic))
    return ir::emitUnsupported(grid)
           << "grid '" << grid.getSymName()
           << "' has a size '?'; write how many devices there are";
  return spmd::LayoutAttr::verify([&] { return grid.emitOpError(); },
                                  grid.getShape(), {}, std::nullopt, {}, {});
}

struct ConvertShardToSpmd : impl::ConvertShardToSpmdBase<ConvertShardToSpmd> {
  using ConvertShardToSpmdBase::ConvertShardToSpmdBase;

  /// The devices of the program are those of its grids.
  LogicalResult configure() {
    ModuleOp module = getOperation();
    shard::GridOp first;
    for (auto grid : module.getOps<shard::GridOp>()) {
      if (failed(checkGrid(grid)))
        return failure();
      if (!first)
        first = grid;
      else if (ShapedType::getNumElements(first.getShape()) !=
               ShapedType::getNumElements(grid.getShape()))
        return ir::emitUnsupported(grid)
               << "grids '" << first.getSymName() << "' and '"
               << grid.getSymName() << "' have different numbers of devices";
    }
    if (first && module.getOps<ir::DeviceConfigOp>().empty()) {
      OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
      ir::DeviceConfigOp::create(
          b, first.getLoc(), "config",
          ir::DeviceConfigAttr::get(
              &getContext(), ShapedType::getNumElements(first.getShape()),
              nullptr));
    }
    return success();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(configure()))
      return signalPassFailure();
    SmallVector<Operation *> all;
    module.walk([&](Operation *op) {
      if (isa_and_nonnull<shard::ShardDialect>(op->getDialect()))
        all.push_back(op);
    });
    if (all.empty())
      return markAllAnalysesPreserved();
    for (Operation *op : all)
      if (failed(convert(op)))
        return signalPassFailure();
    for (Operation *op : llvm::reverse(all)) // users first
      if (op->use_empty())
        op->erase();
  }
};

} // namespace

} // namespace mgpu::conversion

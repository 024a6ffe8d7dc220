// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/lower/ExpandVectors.h"

#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace mgpu::kernels {

namespace {

/// The operations that are expanded here.
bool isExpanded(Operation *op) {
  return isa<vector::ContractionOp, vector::OuterProductOp,
             vector::MultiDimReductionOp, vector::TransposeOp,
             vector::BitCastOp, vector::CreateMaskOp, vector::ConstantMaskOp,
             vector::TransferReadOp, vector::TransferWriteOp, vector::GatherOp,
             vector::ScatterOp, vector::MaskedLoadOp, vector::MaskedStoreOp,
             vector::CompressStoreOp, vector::ExpandLoadOp, vector::MaskOp,
             vector::InterleaveOp, vector::DeinterleaveOp,
             vector::ExtractStridedSliceOp, vector::InsertStridedSliceOp,
             vector::TypeCastOp, vector::ScanOp>(op);
}

/// The indices of the lane `count` places after the first.
SmallVector<Value> shifted(OpBuilder &b, Location loc, ValueRange indices,
                           Value count) {
  SmallVector<Value> at(indices);
  at.back() = arith::AddIOp::create(b, loc, at.back(), count);
  return at;
}

/// Whether the element at `indices` lies before the end of the memory, whose
/// rows follow each other; null where the memory has gaps.
Value isInside(OpBuilder &b, Location loc, Value memref, ValueRange indices) {
  auto type = cast<MemRefType>(memref.getType());
  if (!type.getLayout().isIdentity())
    return {};
  Value place = arith::ConstantIndexOp::create(b, loc, 0);
  Value size = arith::ConstantIndexOp::create(b, loc, 1);
  for (auto [dim, index] : llvm::enumerate(indices)) {
    Value extent = b.createOrFold<memref::DimOp>(loc, memref, int64_t(dim));
    place = arith::MulIOp::create(b, loc, place, extent);
    place = arith::AddIOp::create(b, loc, place, index);
    size = arith::MulIOp::create(b, loc, size, extent);
  }
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, place, size);
}

/// Lane by lane: the lanes of the mask take neighbouring places of memory.
template <typename Op>
struct PackedLanes : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  static constexpr bool isStore = std::is_same_v<Op, vector::CompressStoreOp>;

  LogicalResult matchAndRewrite(Op op, PatternRewriter &b) const override {
    Location loc = op.getLoc();
    VectorType type = op.getVectorType();
    Value count = arith::ConstantIndexOp::create(b, loc, 0), whole;
    if constexpr (!isStore)
      whole = op.getPassThru();
    for (int64_t lane = 0; lane < type.getNumElements(); ++lane) {
      Value on = vector::ExtractOp::create(b, loc, op.getMask(), lane);
      SmallVector<Value> at = shifted(b, loc, op.getIndices(), count);
      Value touches = on;
      if (Value inside = isInside(b, loc, op.getBase(), at))
        touches = arith::AndIOp::create(b, loc, on, inside);
      auto branch = scf::IfOp::create(
          b, loc, isStore ? TypeRange() : TypeRange(type), touches,
          /*withElseRegion=*/!isStore);
      {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(branch.thenBlock());
        if constexpr (isStore) {
          Value value =
              vector::ExtractOp::create(b, loc, op.getValueToStore(), lane);
          memref::StoreOp::create(b, loc, value, op.getBase(), at);
        } else {
          Value value = memref::LoadOp::create(b, loc, op.getBase(), at);
          Value with = vector::InsertOp::create(b, loc, value, whole, lane);
          scf::YieldOp::create(b, loc, with);
          b.setInsertionPointToStart(branch.elseBlock());
          scf::YieldOp::create(b, loc, whole);
        }
      }
      if constexpr (!isStore)
        whole = branch.getResult(0);
      Value one = arith::IndexCastUIOp::create(b, loc, b.getIndexType(), on);
      count = arith::AddIOp::create(b, loc, count, one);
    }
    if constexpr (isStore)
      b.eraseOp(op);
    else
      b.replaceOp(op, whole);
    return success();
  }
};

/// Lane by lane, in order: a later lane wins.
struct ScatterLanes : OpRewritePattern<vector::ScatterOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(vector::ScatterOp op,
                                PatternRewriter &b) const override {
    if (op.getVectorType().getRank() != 1 || op->getNumResults() > 0)
      return failure();
    Location loc = op.getLoc();
    for (int64_t lane = 0; lane < op.getVectorType().getNumElements(); ++lane) {
      Value on = vector::ExtractOp::create(b, loc, op.getMask(), lane);
      auto branch = scf::IfOp::create(b, loc, on, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      Value index = vector::ExtractOp::create(b, loc, op.getIndices(), lane);
      if (!index.getType().isIndex())
        index = arith::IndexCastOp::create(b, loc, b.getIndexType(), index);
      Value value =
          vector::ExtractOp::create(b, loc, op.getValueToStore(), lane);
      memref::StoreOp::create(b, loc, value, op.getBase(),
                              shifted(b, loc, op.getOffsets(), index));
    }
    b.eraseOp(op);
    return success();
  }
};

/// Memory seen as one vector: the vector's elements are the memory's.
struct LoadOfTypeCast : OpRewritePattern<memref::LoadOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(memref::LoadOp op,
                                PatternRewriter &b) const override {
    auto cast = op.getMemRef().getDefiningOp<vector::TypeCastOp>();
    auto type = dyn_cast<VectorType>(op.getType());
    if (!cast || !type)
      return failure();
    Value zero = arith::ConstantIndexOp::create(b, op.getLoc(), 0);
    b.replaceOpWithNewOp<vector::LoadOp>(
        op, type, cast.getMemref(),
        SmallVector<Value>(size_t(type.getRank()), zero));
    return success();
  }
};

struct StoreOfTypeCast : OpRewritePattern<memref::StoreOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(memref::StoreOp op,
                                PatternRewriter &b) const override {
    auto cast = op.getMemRef().getDefiningOp<vector::TypeCastOp>();
    auto type = dyn_cast<VectorType>(op.getValueToStore().getType());
    if (!cast || !type)
      return failure();
    Value zero = arith::ConstantIndexOp::create(b, op.getLoc(), 0);
    b.replaceOpWithNewOp<vector::StoreOp>(
        op, op.getValueToStore(), cast.getMemref(),
        SmallVector<Value>(size_t(type.getRank()), zero));
    return success();
  }
};

/// Lane by lane, as the bits lie in memory: the first of several narrow lanes
/// is the low part of a wide one.
struct BitsOfLanes : OpRewritePattern<vector::BitCastOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(vector::BitCastOp op,
                                PatternRewriter &b) const override {
    Location loc = op.getLoc();
    VectorType from = op.getSourceVectorType(), to = op.getResultVectorType();
    if (from.getRank() != 1 || !from.getElementType().isIntOrFloat() ||
        !to.getElementType().isIntOrFloat())
      return failure();
    const unsigned width = from.getElementTypeBitWidth();
    const unsigned wanted = to.getElementTypeBitWidth();
    if (std::max(width, wanted) % std::min(width, wanted) != 0)
      return failure();
    Type word = b.getIntegerType(std::max(width, wanted));
    auto shift = [&](unsigned lanes) -> Value {
      return arith::ConstantOp::create(
          b, loc, b.getIntegerAttr(word, lanes * std::min(width, wanted)));
    };
    SmallVector<Value> lanes, elements;
    for (int64_t k = 0; k < from.getNumElements(); ++k) {
      Value lane = vector::ExtractOp::create(b, loc, op.getSource(), k);
      lane =
          b.createOrFold<arith::BitcastOp>(loc, b.getIntegerType(width), lane);
      if (width < wanted)
        lane = arith::ExtUIOp::create(b, loc, word, lane);
      lanes.push_back(lane);
    }
    const unsigned parts = std::max(width, wanted) / std::min(width, wanted);
    for (unsigned k = 0; k < unsigned(to.getNumElements()); ++k) {
      Value bits = width < wanted ? lanes[k * parts] : lanes[k / parts];
      for (unsigned part = 1; width < wanted && part < parts; ++part) {
        Value lane =
            arith::ShLIOp::create(b, loc, lanes[k * parts + part], shift(part));
        bits = arith::OrIOp::create(b, loc, bits, lane);
      }
      if (width > wanted) {
        bits = arith::ShRUIOp::create(b, loc, bits, shift(k % parts));
        bits = arith::TruncIOp::create(b, loc, b.getIntegerType(wanted), bits);
      }
      elements.push_back(
          b.createOrFold<arith::BitcastOp>(loc, to.getElementType(), bits));
    }
    b.replaceOpWithNewOp<vector::FromElementsOp>(op, to, elements);
    return success();
  }
};

void addPatterns(RewritePatternSet &patterns) {
  patterns.add<BitsOfLanes, PackedLanes<vector::CompressStoreOp>,
               PackedLanes<vector::ExpandLoadOp>, ScatterLanes, LoadOfTypeCast,
               StoreOfTypeCast>(patterns.getContext());
  vector::populateVectorContractLoweringPatterns(
      patterns, vector::VectorContractLowering::OuterProduct);
  vector::populateVectorOuterProductLoweringPatterns(patterns);
  vector::populateVectorMultiReductionLoweringPatterns(
      patterns, vector::VectorMultiReductionLowering::InnerReduction);
  vector::populateVectorTransposeLoweringPatterns(
      patterns, vector::VectorTransposeLowering::EltWise);
  vector::populateVectorMaskOpLoweringPatterns(patterns);
  vector::populateVectorMaskMaterializationPatterns(
      patterns, /*force32BitVectorIndices=*/false);
  vector::populateVectorTransferPermutationMapLoweringPatterns(patterns);
  vector::populateVectorTransferLoweringPatterns(patterns, 1);
  vector::populateVectorGatherLoweringPatterns(patterns);
  vector::populateVectorGatherToConditionalLoadPatterns(patterns);
  vector::populateVectorMaskedLoadStoreEmulationPatterns(patterns);
  vector::populateVectorBitCastLoweringPatterns(patterns);
  vector::populateVectorInterleaveLoweringPatterns(patterns);
  vector::populateVectorInterleaveToShufflePatterns(patterns);
  vector::populateVectorScanLoweringPatterns(patterns);
  vector::populateVectorInsertExtractStridedSliceTransforms(patterns);
}

} // namespace

LogicalResult expandVectors(ModuleOp module) {
  WalkResult found = module.walk([](Operation *op) {
    return isExpanded(op) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (!found.wasInterrupted())
    return success();
  // Vectors of several dimensions, and those that do not follow a row, become
  // loops.
  RewritePatternSet loops(module.getContext());
  populateVectorToSCFConversionPatterns(
      loops, VectorTransferToSCFOptions().enableFullUnroll());
  if (failed(applyPatternsGreedily(module, std::move(loops))))
    return failure();
  RewritePatternSet patterns(module.getContext());
  addPatterns(patterns);
  GreedyRewriteConfig config;
  config.setMaxIterations(GreedyRewriteConfig::kNoLimit);
  return applyPatternsGreedily(module, std::move(patterns), config);
}

} // namespace mgpu::kernels

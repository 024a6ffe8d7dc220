// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/lower/Normalise.h"

#include "kernels/lower/ExpandNvidia.h"
#include "kernels/lower/ExpandOps.h"
#include "kernels/lower/SubgroupMatrix.h"
#include "kernels/lower/WarpExecute.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ControlFlowToSCF/ControlFlowToSCF.h"
#include "mlir/Conversion/VectorToGPU/VectorToGPU.h"
#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/RegionUtils.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

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

/// Writes operations on whole vectors by those that both emitters have, with
/// MLIR's own patterns: contractions (as sums of outer products, in order of
/// the reduced index), outer products, reductions of several dimensions,
/// transposes, casts of bits, masks, transfers, gathers, and loads and stores
/// under a mask, lane by lane.
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

/// Whether all lanes of a subgroup surely have the same value.
bool isUniform(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *owner = argument.getOwner()->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(owner))
      return argument == loop.getInductionVar() &&
             isUniform(loop.getLowerBound()) &&
             isUniform(loop.getUpperBound()) && isUniform(loop.getStep());
    return isa<func::FuncOp>(owner);
  }
  Operation *op = value.getDefiningOp();
  if (isa<gpu::ThreadIdOp, gpu::LaneIdOp, gpu::GlobalIdOp>(op) ||
      op->getNumRegions() > 0 || !isPure(op))
    return false;
  return llvm::all_of(op->getOperands(), isUniform);
}

/// Whether all lanes come to `op`.
bool allCome(Operation *op) {
  for (Operation *at = op->getParentOp(); !isa<func::FuncOp>(at);
       at = at->getParentOp()) {
    auto loop = dyn_cast<scf::ForOp>(at);
    if (!loop || !isUniform(loop.getInductionVar()))
      return false;
  }
  return true;
}

bool isOfAllLanes(func::FuncOp function) {
  bool any = false;
  WalkResult result = function.walk([&](Operation *op) {
    any |= isa<vector::ContractionOp>(op);
    if (!isa<vector::ContractionOp, vector::TransferReadOp,
             vector::TransferWriteOp>(op))
      return WalkResult::advance();
    const bool isSame =
        allCome(op) && llvm::all_of(op->getOperands(), [](Value operand) {
          return !operand.getType().isIndex() || isUniform(operand);
        });
    return isSame ? WalkResult::advance() : WalkResult::interrupt();
  });
  return any && !result.wasInterrupted();
}

} // namespace

/// Makes operations on matrices of a subgroup (gpu.subgroup_mma_*) of
/// vector.contract where all lanes surely compute the same, as MLIR's
/// convert-vector-to-gpu does: on tensor cores, and so that the lanes do not
/// write the same memory one after the other.
static LogicalResult makeSubgroupProducts(ModuleOp module, Dim3 block) {
  constexpr uint64_t lanes = 32;
  if (block.volume() % lanes != 0)
    return success();
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isDeclaration() || !isOfAllLanes(function))
      continue;
    RewritePatternSet patterns(module.getContext());
    populatePrepareVectorToMMAPatterns(patterns);
    if (failed(applyPatternsGreedily(function, std::move(patterns))))
      return failure();
    IRRewriter rewriter(module.getContext());
    // An operation that has no form as matrices stays.
    (void)convertVectorToMMAOps(rewriter, function);
  }
  return success();
}

namespace {

/// MLIR's, but for loops that never end: its return from them is a function's.
class Lifting : public ControlFlowToSCFTransformation {
  FailureOr<Operation *> createUnreachableTerminator(Location, OpBuilder &,
                                                     Region &region) override {
    return region.getParentOp()->emitOpError(
        "has a loop that never ends, which kernels do not support");
  }
};

} // namespace

/// Whether a call of `callee` comes to `function`.
static bool reaches(func::FuncOp callee, func::FuncOp function,
                    llvm::DenseSet<Operation *> &seen) {
  if (callee == function)
    return true;
  if (!seen.insert(callee).second)
    return false;
  return callee
      .walk([&](func::CallOp call) {
        auto next = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
            call, call.getCalleeAttr());
        return next && reaches(next, function, seen) ? WalkResult::interrupt()
                                                     : WalkResult::advance();
      })
      .wasInterrupted();
}

static LogicalResult checkRecursion(ModuleOp module) {
  WalkResult result = module.walk([](func::CallOp call) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
        call, call.getCalleeAttr());
    llvm::DenseSet<Operation *> seen;
    if (!callee ||
        !reaches(callee, call->getParentOfType<func::FuncOp>(), seen))
      return WalkResult::advance();
    call.emitOpError("is recursive, which kernels do not support");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Makes scf operations of the branches among blocks (cf), in functions and in
/// the bodies of operations, so that each region has one block. Fails, with a
/// diagnostic at the op, on what does not end and on recursion.
static LogicalResult liftControl(ModuleOp module) {
  if (failed(checkRecursion(module)))
    return failure();
  SmallVector<Region *> regions; // inner ones first
  module.walk([&](Operation *op) {
    for (Region &region : op->getRegions())
      if (!region.empty() && !region.hasOneBlock())
        regions.push_back(&region);
  });
  if (regions.empty())
    return success();
  module.getContext()
      ->loadDialect<scf::SCFDialect, ub::UBDialect, arith::ArithDialect>();
  IRRewriter rewriter(module.getContext());
  for (Region *region : regions) {
    (void)eraseUnreachableBlocks(rewriter, *region);
    if (region->hasOneBlock())
      continue;
    Lifting lifting;
    DominanceInfo dominance(region->getParentOp());
    if (failed(transformCFGToSCF(*region, lifting, dominance)))
      return failure();
  }
  return success();
}

/// The value of a cluster query where each cluster is one block; null for other
/// operations.
static Value clusterValue(Operation *op, OpBuilder &b) {
  Location loc = op->getLoc();
  if (auto id = dyn_cast<gpu::ClusterIdOp>(op))
    return gpu::BlockIdOp::create(b, loc, id.getDimension());
  if (auto dim = dyn_cast<gpu::ClusterDimOp>(op))
    return gpu::GridDimOp::create(b, loc, dim.getDimension());
  if (isa<gpu::ClusterBlockIdOp>(op))
    return arith::ConstantIndexOp::create(b, loc, 0);
  if (isa<gpu::ClusterDimBlocksOp>(op))
    return arith::ConstantIndexOp::create(b, loc, 1);
  return {};
}

/// A broadcast is a shuffle of all lanes from one: all lanes are there, so the
/// first active one is lane 0.
static void expandBroadcast(gpu::SubgroupBroadcastOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto number = [&](int32_t value) -> Value {
    return arith::ConstantIntOp::create(b, loc, value, 32);
  };
  Value from = op.getLane() ? op.getLane() : number(0), value = op.getSrc();
  const bool isIndex = value.getType().isIndex();
  if (isIndex)
    value = arith::IndexCastOp::create(b, loc, b.getI64Type(), value);
  Value shuffled = gpu::ShuffleOp::create(b, loc, value, from, number(32),
                                          gpu::ShuffleMode::IDX)
                       .getShuffleResult();
  if (isIndex)
    shuffled = arith::IndexCastOp::create(b, loc, b.getIndexType(), shuffled);
  op.replaceAllUsesWith(shuffled);
  op.erase();
}

/// Makes a nest of scf.for, whose iterations combine the reductions in order:
/// scf::parallelForToNestedFors takes loops without results only.
static void nestLoops(scf::ParallelOp op) {
  auto makeBody = [&](OpBuilder &b, Location, ValueRange ids,
                      ValueRange carried) {
    IRMapping map;
    map.map(op.getInductionVars(), ids);
    for (Operation &each : op.getBody()->without_terminator())
      b.clone(each, map);
    auto reduce = cast<scf::ReduceOp>(op.getBody()->getTerminator());
    scf::ValueVector next;
    for (auto [k, region] : llvm::enumerate(reduce.getReductions())) {
      Block &combine = region.front();
      map.map(combine.getArgument(0), carried[k]);
      map.map(combine.getArgument(1),
              map.lookupOrDefault(reduce.getOperands()[k]));
      for (Operation &each : combine.without_terminator())
        b.clone(each, map);
      next.push_back(
          map.lookupOrDefault(combine.getTerminator()->getOperand(0)));
    }
    return next;
  };
  OpBuilder b(op);
  scf::LoopNest nest =
      scf::buildLoopNest(b, op.getLoc(), op.getLowerBound(), op.getUpperBound(),
                         op.getStep(), op.getInitVals(), makeBody);
  op.replaceAllUsesWith(nest.results);
  op.erase();
}

LogicalResult normaliseKernel(ModuleOp module, Dim3 block, NvidiaOps ops) {
  // The dialects of what is written here and by eraseDeadCode: a text that has
  // none of their operations has not loaded them.
  module.getContext()
      ->loadDialect<affine::AffineDialect, arith::ArithDialect, gpu::GPUDialect,
                    math::MathDialect, memref::MemRefDialect, scf::SCFDialect,
                    ub::UBDialect, vector::VectorDialect>();
  if (failed(liftControl(module)))
    return failure();
  expandNvidia(module, ops);
  // By a walk, as the pass of these patterns also erases what nobody uses,
  // which the verifiers are to see.
  RewritePatternSet indices(module.getContext());
  affine::populateAffineExpandIndexOpsPatterns(indices);
  walkAndApplyPatterns(module, std::move(indices));
  PassManager lowering(module.getContext());
  lowering.enableVerifier(false);
  lowering.addPass(createLowerAffinePass());
  if (failed(lowering.run(module)))
    return failure();
  SmallVector<Operation *> clusters;
  SmallVector<scf::ParallelOp> parallels; // outer ones last
  SmallVector<gpu::SubgroupBroadcastOp> broadcasts;
  module.walk([&](Operation *op) {
    if (auto broadcast = dyn_cast<gpu::SubgroupBroadcastOp>(op))
      broadcasts.push_back(broadcast);
    if (isa<gpu::ClusterIdOp, gpu::ClusterDimOp, gpu::ClusterBlockIdOp,
            gpu::ClusterDimBlocksOp>(op))
      clusters.push_back(op);
    else if (auto parallel = dyn_cast<scf::ParallelOp>(op))
      parallels.push_back(parallel);
  });
  for (Operation *op : clusters) {
    OpBuilder b(op);
    op->getResult(0).replaceAllUsesWith(clusterValue(op, b));
    op->erase();
  }
  llvm::for_each(broadcasts, expandBroadcast);
  llvm::for_each(parallels, nestLoops);
  if (failed(makeSubgroupProducts(module, block)) ||
      failed(expandVectors(module)))
    return failure();
  expandOperations(module);
  if (failed(checkSubgroupMatrices(module, block)))
    return failure();
  return lowerWarpExecution(module, block);
}

} // namespace mgpu::kernels

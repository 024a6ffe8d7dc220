// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_DECOMPOSETENSORS
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// Whether elementwise fusion should look into `op`. An operation with a text
/// of its own for GPUs, such as a matrix product, keeps its name.
bool isPlain(linalg::LinalgOp op) {
  return !isa<linalg::GenericOp, linalg::FillOp, linalg::CopyOp>(op) &&
         (isa<linalg::ReduceOp, linalg::BroadcastOp, linalg::TransposeOp>(op) ||
          linalg::isElementwise(op));
}

/// Makes a fill of it, which elementwise fusion folds.
void fillSplat(tensor::SplatOp op) {
  OpBuilder b(op);
  Value empty = tensor::EmptyOp::create(b, op.getLoc(), op.getType().getShape(),
                                        op.getType().getElementType());
  op.getAggregate().replaceAllUsesWith(
      linalg::FillOp::create(b, op.getLoc(), op.getInput(), empty)
          .getResult(0));
  op.erase();
}

/// Each element is read from where its index says.
void readByIndex(tensor::GatherOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  RankedTensorType type = op.getResultType();
  unsigned rank = type.getRank();
  unsigned batch = op.getIndicesType().getRank() - 1;
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, loc, op.getIndices());
  sizes.pop_back();
  bool keeps = rank == batch + op.getSourceType().getRank();
  for (auto [dim, size] :
       llvm::enumerate(tensor::getMixedSizes(b, loc, op.getSource())))
    if (!llvm::is_contained(op.getGatherDims(), int64_t(dim)))
      sizes.push_back(size);
    else if (keeps)
      sizes.push_back(b.getIndexAttr(1));
  Value init = tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
  auto body = [&](OpBuilder &in, Location at, ValueRange) {
    SmallVector<Value> place, from;
    for (unsigned dim = 0; dim < batch; ++dim)
      place.push_back(linalg::IndexOp::create(in, at, dim));
    unsigned next = batch;
    for (int64_t dim = 0; dim < op.getSourceType().getRank(); ++dim) {
      auto *found = llvm::find(op.getGatherDims(), dim);
      if (found == op.getGatherDims().end()) {
        from.push_back(linalg::IndexOp::create(in, at, next++));
        continue;
      }
      next += keeps;
      place.push_back(arith::ConstantIndexOp::create(
          in, at, found - op.getGatherDims().begin()));
      Value index = tensor::ExtractOp::create(in, at, op.getIndices(), place);
      place.pop_back();
      from.push_back(
          index.getType().isIndex()
              ? index
              : arith::IndexCastOp::create(in, at, in.getIndexType(), index));
    }
    Value read = tensor::ExtractOp::create(in, at, op.getSource(), from);
    linalg::YieldOp::create(in, at, read);
  };
  auto made = linalg::GenericOp::create(
      b, loc, TypeRange(init.getType()), ValueRange(), ValueRange(init),
      ArrayRef(AffineMap::getMultiDimIdentityMap(rank, b.getContext())),
      SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
      body);
  op.getResult().replaceAllUsesWith(made.getResult(0));
  op.erase();
}

/// Whether `map` leaves out some of the dimensions that it may, and none of
/// them without points.
bool leavesOut(linalg::GenericOp op, AffineMap map) {
  if (!map.isProjectedPermutation())
    return false;
  bool isAny = false;
  for (auto [dim, kind, size] :
       llvm::enumerate(op.getIteratorTypesArray(), op.getStaticLoopRanges())) {
    if (map.isFunctionOfDim(dim))
      continue;
    if (size == 0 || ShapedType::isDynamic(size))
      return false;
    isAny |= size > 1 && linalg::isParallelIterator(kind);
  }
  return isAny;
}

/// The values of the body that result `k` is computed from; nothing where they
/// depend on a dimension that it leaves out, or on the result itself.
std::optional<DenseSet<Value>> sharedValues(linalg::GenericOp op, unsigned k) {
  const AffineMap map = op.getIndexingMapMatchingResult(op->getResult(k));
  Block *body = op.getBody();
  DenseSet<Value> needed = {body->getTerminator()->getOperand(k)};
  for (Operation &each : llvm::reverse(body->without_terminator())) {
    if (!llvm::any_of(each.getResults(),
                      [&](Value value) { return needed.contains(value); }))
      continue;
    auto index = dyn_cast<linalg::IndexOp>(each);
    if (each.getNumRegions() || (index && !map.isFunctionOfDim(index.getDim())))
      return std::nullopt;
    needed.insert_range(each.getOperands());
  }
  for (auto [from, argument] :
       llvm::zip(op.getIndexingMapsArray(), body->getArguments())) {
    if (!needed.contains(argument))
      continue;
    for (unsigned dim = 0; dim < map.getNumDims(); ++dim)
      if (from.isFunctionOfDim(dim) && !map.isFunctionOfDim(dim))
        return std::nullopt;
    if (argument.getArgNumber() >= op.getNumDpsInputs())
      return std::nullopt;
  }
  return needed;
}

/// Result `k` as an operation over its own dimensions.
Value makeShared(linalg::GenericOp op, unsigned k,
                 const DenseSet<Value> &needed) {
  OpBuilder b(op);
  const AffineMap map = op.getIndexingMapMatchingResult(op->getResult(k));
  const unsigned rank = map.getNumResults();
  SmallVector<AffineExpr> dims(map.getNumDims(), b.getAffineConstantExpr(0));
  for (unsigned at = 0; at < rank; ++at)
    dims[map.getDimPosition(at)] = b.getAffineDimExpr(at);
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  IRMapping mapping;
  for (OpOperand *input : op.getDpsInputOperands())
    if (needed.contains(op.getMatchingBlockArgument(input))) {
      inputs.push_back(input->get());
      maps.push_back(op.getMatchingIndexingMap(input).replaceDimsAndSymbols(
          dims, {}, rank, 0));
    }
  maps.push_back(b.getMultiDimIdentityMap(rank));
  Block *body = op.getBody();
  auto made = linalg::GenericOp::create(
      b, op.getLoc(), op->getResult(k).getType(), inputs, op.getDpsInits()[k],
      maps,
      SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
      [&](OpBuilder &in, Location at, ValueRange arguments) {
        for (BlockArgument argument : body->getArguments())
          if (needed.contains(argument)) {
            mapping.map(argument, arguments.front());
            arguments = arguments.drop_front();
          }
        for (Operation &each : body->without_terminator())
          if (llvm::any_of(each.getResults(), [&](Value value) {
                return needed.contains(value);
              })) {
            auto index = dyn_cast<linalg::IndexOp>(in.clone(each, mapping));
            if (index)
              index.setDim(
                  cast<AffineDimExpr>(dims[index.getDim()]).getPosition());
          }
        linalg::YieldOp::create(
            in, at,
            mapping.lookupOrDefault(body->getTerminator()->getOperand(k)));
      });
  return made.getResult(0);
}

/// A result that leaves out parallel dimensions is written at each of their
/// points: where these write the same, it becomes an operation of its own, so
/// that each element is written once.
void writeOnce(linalg::GenericOp op) {
  for (OpResult result : op.getResults()) {
    if (!leavesOut(op, op.getIndexingMapMatchingResult(result)))
      continue;
    const unsigned k = result.getResultNumber();
    if (std::optional<DenseSet<Value>> needed = sharedValues(op, k))
      result.replaceAllUsesWith(makeShared(op, k, *needed));
  }
}

struct DecomposeTensors : impl::DecomposeTensorsBase<DecomposeTensors> {
  using DecomposeTensorsBase::DecomposeTensorsBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    tensor::populateDecomposeTensorConcatPatterns(patterns);
    tensor::populateFoldTensorSubsetOpPatterns(patterns);
    // A later pass drops dead code; here each round would.
    GreedyRewriteConfig config;
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    if (failed(
            applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    getOperation().walk(fillSplat);
    getOperation().walk(readByIndex);
    getOperation().walk(writeOnce);
    getOperation().walk([&](linalg::LinalgOp op) {
      if (!isPlain(op))
        return;
      rewriter.setInsertionPoint(op);
      (void)linalg::generalizeNamedOp(rewriter, op);
    });
  }
};

} // namespace

} // namespace mgpu::conversion

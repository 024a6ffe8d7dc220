// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/FewVectors.h"
#include "dialect/conversion/Passes.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_FUSEELEMENTWISE
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// Whether `op` adds to what it is given, as it would do once more for each
/// step of a sum that took it in.
bool readsStart(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  return generic &&
         llvm::any_of(generic.getDpsInitsMutable(), [&](OpOperand &init) {
           return generic.payloadUsesValueFromOperand(&init);
         });
}

/// Rows of a sum from which it does not compute functions of what it sums.
constexpr int64_t manyRows = 16;

/// Whether `sum` would compute a function of one argument, as exp, in each of
/// its many rows anew if it took `producer` in: the rows of a matrix by
/// `operand`, a vector, in place of the vector's elements once.
bool computesInEachRow(linalg::GenericOp producer, linalg::GenericOp sum,
                       OpOperand *operand) {
  if (sum.getNumReductionLoops() == 0 ||
      !llvm::any_of(producer.getBody()->without_terminator(), [](auto &op) {
        return isa<math::MathDialect>(op.getDialect());
      }))
    return false;
  const AffineMap map = sum.getMatchingIndexingMap(operand);
  int64_t rows = 1;
  for (auto [loop, length] : llvm::enumerate(sum.getStaticLoopRanges()))
    if (!map.isFunctionOfDim(loop) && !ShapedType::isDynamic(length))
      rows *= length;
  return rows >= manyRows;
}

/// Whether what `operand` brings is used there alone, and both sides are plain
/// loops: upstream would turn a matrix product into loops to take in a reshape.
bool mayFold(OpOperand *operand) {
  Operation *producer = operand->get().getDefiningOp();
  auto isPlain = [](Operation *op) {
    return !isa<linalg::LinalgOp>(op) || isa<linalg::GenericOp>(op);
  };
  auto loops = dyn_cast_or_null<linalg::GenericOp>(producer),
       reader = dyn_cast<linalg::GenericOp>(operand->getOwner());
  return producer && producer->hasOneUse() && isPlain(producer) &&
         isPlain(operand->getOwner()) &&
         !(isa<linalg::LinalgOp>(operand->getOwner()) &&
           readsStart(producer)) &&
         !(loops && reader && computesInEachRow(loops, reader, operand));
}

/// Whether `operand` is a matrix product whose rows follow several dimensions,
/// and which shares launches: not one of few vectors, nor of narrow floats. Its
/// reader then follows as many dimensions as the product does.
bool isProductOfRows(OpOperand *operand) {
  auto expand = operand->get().getDefiningOp<tensor::ExpandShapeOp>();
  if (!expand || !expand->hasOneUse())
    return false;
  auto op = expand.getSrc().getDefiningOp<linalg::LinalgOp>();
  if (!isa_and_nonnull<linalg::MatmulOp, linalg::BatchMatmulOp>(
          op.getOperation()))
    return false;
  const Type factor = getElementTypeOrSelf(op.getDpsInputOperand(0)->get());
  ArrayRef<int64_t> shape = expand.getSrcType().getShape();
  return shape[shape.size() - 2] > mostVectors && factor.isIntOrFloat() &&
         factor.getIntOrFloatBitWidth() >= 32;
}

/// The indexing maps without that of input `k`; nothing where the others do not
/// say how long the loops are.
std::optional<SmallVector<AffineMap>> mapsWithout(linalg::GenericOp op,
                                                  unsigned k) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  maps.erase(maps.begin() + k);
  if (!inversePermutation(concatAffineMaps(maps, op.getContext())))
    return std::nullopt;
  return maps;
}

/// Takes inputs that are one number everywhere into the body, in place:
/// upstream's pattern makes the operation anew for each, which is a third of
/// the time of this pass.
void takeSplats(linalg::GenericOp op) {
  OpBuilder b(op);
  for (unsigned k = 0;
       op.hasPureTensorSemantics() && k < op.getInputs().size();) {
    DenseElementsAttr value;
    std::optional<SmallVector<AffineMap>> maps;
    if (matchPattern(op.getInputs()[k], m_Constant(&value)) &&
        value.isSplat() && value.getElementType().isIntOrFloat())
      maps = mapsWithout(op, k);
    if (!maps) {
      ++k;
      continue;
    }
    auto number = arith::ConstantOp::create(b, op.getInputs()[k].getLoc(),
                                            value.getSplatValue<TypedAttr>());
    op.getBody()->getArgument(k).replaceAllUsesWith(number);
    op.getBody()->eraseArgument(k);
    op.getInputsMutable().erase(k);
    op.setIndexingMapsAttr(b.getAffineMapArrayAttr(*maps));
  }
}

bool hasExpansions(ModuleOp module) {
  return module
      .walk([](tensor::ExpandShapeOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

struct FuseElementwise : impl::FuseElementwiseBase<FuseElementwise> {
  using FuseElementwiseBase::FuseElementwiseBase;

  void runOnOperation() override {
    getOperation().walk(takeSplats);
    RewritePatternSet patterns(&getContext());
    linalg::populateElementwiseOpsFusionPatterns(patterns, mayFold);
    linalg::populateFoldReshapeOpsByExpansionPatterns(patterns, mayFold);
    linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
    linalg::GenericOp::getCanonicalizationPatterns(patterns, &getContext());
    // A later pass drops dead code; here each round would.
    GreedyRewriteConfig config;
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    RewritePatternSet ofProducts(&getContext());
    linalg::populateFoldReshapeOpsByCollapsingPatterns(ofProducts,
                                                       isProductOfRows);
    // One after the other: the second undoes expansions that the first makes.
    for (RewritePatternSet *each : {&patterns, &ofProducts})
      if ((each == &patterns || hasExpansions(getOperation())) &&
          failed(
              applyPatternsGreedily(getOperation(), std::move(*each), config)))
        return signalPassFailure();
  }
};

} // namespace

} // namespace mgpu::conversion

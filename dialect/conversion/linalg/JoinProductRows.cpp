// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A product of a few vectors and a large matrix has a row for each pair of a
// vector and a column of the result, and would read the matrix once for each
// vector. One reduction with a result for each vector reads it once.
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/linalg/Computations.h"
#include "dialect/conversion/linalg/PointForm.h"
#include "dialect/conversion/linalg/ProductSteps.h"
#include "dialect/conversion/linalg/RowThreads.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_JOINPRODUCTROWS
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

class Joiner {
public:
  Joiner(linalg::LinalgOp op, const linalg::ContractionDimensions &loops)
      : op(op), m(loops.m[0]), n(loops.n[0]), b(op) {
    vectors = op.getDpsInputOperand(0), matrix = op.getDpsInputOperand(1);
    if (!op.getMatchingIndexingMap(vectors).isFunctionOfDim(m))
      std::swap(vectors, matrix);
  }
  /// The reduction, before `op`; the sums are views.
  linalg::GenericOp join();
  /// Lets the fill that begins the sums begin each view of them.
  void splitFill();

private:
  /// The results at each place along m.
  SmallVector<Value> views(OpOperand &operand);
  /// The map of an operand at place `at` along m. That loop has one trip, as
  /// that of one vector has; a place among the vectors is a number in their
  /// map, so that they stay one buffer with one address.
  AffineMap mapOf(OpOperand &operand, int64_t at);
  void build(Block &body);

  linalg::LinalgOp op;
  unsigned m, n; ///< its loops
  OpOperand *vectors, *matrix;
  OpBuilder b;
  SmallVector<Value> sums;
};

SmallVector<Value> Joiner::views(OpOperand &operand) {
  auto type = cast<MemRefType>(operand.get().getType());
  SmallVector<OpFoldResult> offsets, sizes,
      strides(size_t(type.getRank()), b.getIndexAttr(1));
  size_t along = 0;
  for (auto [k, each] :
       llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults())) {
    const bool isAlong = each.isFunctionOfDim(m);
    along = isAlong ? k : along;
    offsets.push_back(b.getIndexAttr(0));
    sizes.push_back(b.getIndexAttr(isAlong ? 1 : type.getDimSize(unsigned(k))));
  }
  SmallVector<Value> all;
  for (int64_t at = 0; at < type.getDimSize(unsigned(along)); ++at) {
    offsets[along] = b.getIndexAttr(at);
    all.push_back(memref::SubViewOp::create(b, op.getLoc(), operand.get(),
                                            offsets, sizes, strides));
  }
  return all;
}

AffineMap Joiner::mapOf(OpOperand &operand, int64_t at) {
  SmallVector<AffineExpr> results;
  for (AffineExpr each : op.getMatchingIndexingMap(&operand).getResults())
    if (!each.isFunctionOfDim(m))
      results.push_back(b.getAffineDimExpr(each.isFunctionOfDim(n) ? 1 : 2));
    else if (op.isDpsInit(&operand))
      results.push_back(b.getAffineDimExpr(0));
    else
      results.push_back(b.getAffineConstantExpr(at));
  return AffineMap::get(3, 0, results, b.getContext());
}

/// The body of `op` for each vector; once what needs the matrix alone.
void Joiner::build(Block &body) {
  OpBuilder inside = OpBuilder::atBlockEnd(&body);
  SmallVector<Value> results;
  const size_t count = sums.size();
  Block *source = op.getBlock();
  IRMapping shared;
  shared.map(op.getMatchingBlockArgument(matrix), body.getArgument(count));
  for (Operation &each : source->without_terminator())
    if (each.getNumRegions() == 0 && isMemoryEffectFree(&each) &&
        llvm::all_of(each.getOperands(), [&](Value operand) {
          return shared.contains(operand) || operand.getParentBlock() != source;
        }))
      inside.clone(each, shared);
  for (size_t at = 0; at < count; ++at) {
    IRMapping map = shared;
    map.map(op.getMatchingBlockArgument(vectors), body.getArgument(at));
    map.map(op.getRegionOutputArgs()[0], body.getArgument(count + 1 + at));
    for (Operation &each : source->without_terminator())
      if (!shared.contains(&each))
        inside.clone(each, map);
    results.push_back(map.lookup(source->getTerminator()->getOperand(0)));
  }
  linalg::YieldOp::create(inside, op.getLoc(), results);
}

linalg::GenericOp Joiner::join() {
  markProduct(op);
  OpOperand &results = *op.getDpsInitOperand(0);
  sums = views(results);
  SmallVector<Value> inputs(sums.size(), vectors->get());
  inputs.push_back(matrix->get());
  SmallVector<AffineMap> maps;
  for (size_t at = 0; at < sums.size(); ++at)
    maps.push_back(mapOf(*vectors, int64_t(at)));
  maps.push_back(mapOf(*matrix, 0));
  maps.append(sums.size(), mapOf(results, 0));
  auto made = linalg::GenericOp::create(b, op.getLoc(), inputs, sums, maps,
                                        {utils::IteratorType::parallel,
                                         utils::IteratorType::parallel,
                                         utils::IteratorType::reduction});
  auto name = op->getAttrOfType<StringAttr>("mgpu.name");
  made->setAttr("mgpu.name",
                name ? name : b.getStringAttr(op->getName().stripDialect()));
  Block &body = made.getRegion().emplaceBlock();
  for (Value each : made->getOperands())
    body.addArgument(getElementTypeOrSelf(each), op.getLoc());
  build(body);
  return made;
}

void Joiner::splitFill() {
  Value all = op.getDpsInitOperand(0)->get();
  for (Operation *prev = sums.front().getDefiningOp()->getPrevNode(); prev;
       prev = prev->getPrevNode()) {
    auto fill = dyn_cast<linalg::FillOp>(prev);
    if (!fill && !mayBeBetween(prev))
      return;
    if (!fill || fill.output() != all)
      continue;
    b.setInsertionPoint(fill);
    for (Value each : sums) {
      each.getDefiningOp()->moveBefore(fill);
      linalg::FillOp::create(b, fill.getLoc(), fill.value(), each);
    }
    fill->erase();
    return;
  }
}

void tryJoin(linalg::LinalgOp op) {
  auto product = skinnyProductOf(op);
  if (!product || op.getStaticLoopRanges()[product->m[0]] < 2)
    return;
  Joiner joiner(op, *product);
  linalg::GenericOp made = joiner.join();
  auto form = rowFormOf(made, RowKind::Reduce);
  if (!form || !visibleDevice(*form)) {
    SmallVector<Value> operands(made->getOperands());
    made->erase();
    for (Value each : operands)
      if (auto view = each.getDefiningOp<memref::SubViewOp>())
        if (view->use_empty())
          view->erase();
    return;
  }
  joiner.splitFill();
  op->erase();
}

struct JoinProductRows : impl::JoinProductRowsBase<JoinProductRows> {
  using JoinProductRowsBase::JoinProductRowsBase;

  void runOnOperation() override {
    for (Operation *each : computationsOf(getOperation(), entry))
      if (auto op = dyn_cast<linalg::LinalgOp>(each))
        tryJoin(op);
  }
};

} // namespace

} // namespace mgpu::conversion

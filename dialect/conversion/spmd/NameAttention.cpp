// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gives each attention that AttentionFinder finds its operation, with the
// computation of a score as its body.
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/spmd/AttentionFinder.h"
#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_NAMEATTENTION
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// Makes the operation of an attention that was found.
class AttentionBuilder {
public:
  explicit AttentionBuilder(AttentionFinder &found) : found(found) {}
  /// Null where the scores or the sizes are none that the operation has.
  spmd::AttentionOp make();

private:
  bool isCheap(Value tensor, unsigned depth = 0);
  Value number(OpBuilder &b, const Index &index);
  Value build(OpBuilder &b, Element element, unsigned depth = 0);
  AffineMap mapOf(const Element &element);

  AttentionFinder &found;
  Block body;
  SmallVector<Value> extras;
  SmallVector<Element> extraElements;
  SmallVector<Value> indices; ///< by number of a loop
  unsigned numBuilt = 0;      ///< values that are shared count each time
};

/// Whether elements of the tensor are computed by a few operations of
/// numbers, so that each score may compute its own.
bool AttentionBuilder::isCheap(Value tensor, unsigned depth) {
  constexpr unsigned most = 8;
  Operation *op = tensor.getDefiningOp();
  if (!op || depth > most)
    return false;
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
    return isCheap(op->getOperand(0), depth + 1);
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  if (!structured || structured.getNumReductionLoops() != 0)
    return false;
  return llvm::all_of(*structured.getBlock(), [](Operation &each) {
    return (each.getDialect()->getNamespace() == "arith" &&
            !isa<arith::DivFOp, arith::RemFOp>(each)) ||
           isa<linalg::IndexOp, linalg::YieldOp>(each);
  });
}

Value AttentionBuilder::number(OpBuilder &b, const Index &index) {
  Location loc = found.root.getLoc();
  Value all = arith::ConstantIndexOp::create(b, loc, index.back());
  for (size_t loop = 0; loop < found.elements.loops.size(); ++loop) {
    if (index[loop] == 0)
      continue;
    if (!indices[loop])
      return {};
    Value factor = arith::ConstantIndexOp::create(b, loc, index[loop]);
    all = arith::AddIOp::create(
        b, loc, all, arith::MulIOp::create(b, loc, indices[loop], factor));
  }
  return all;
}

/// Builds what computes the element in the body; null where that cannot be.
Value AttentionBuilder::build(OpBuilder &b, Element element, unsigned depth) {
  constexpr unsigned most = 64, mostBuilt = 512;
  if (depth > most || ++numBuilt > mostBuilt)
    return {};
  Location loc = found.root.getLoc();
  if (element.isOfTensor()) {
    element = found.elements.moved(element);
    if (element.value == found.scores->getResult(0))
      return body.getArgument(0);
    if (SplatElementsAttr all; matchPattern(element.value, m_Constant(&all)))
      return arith::ConstantOp::create(b, loc, all.getSplatValue<TypedAttr>());
    if (found.depends(element.value) || isCheap(element.value)) {
      Element next = found.elements.computed(element);
      return next == element ? Value() : build(b, next, depth + 1);
    }
    for (size_t loop = 0; loop < found.elements.loops.size(); ++loop)
      if (Elements::follows(element, loop) && !indices[loop])
        return {};
    for (auto [known, argument] : llvm::zip(extraElements, extras))
      if (known == element)
        return argument;
    extraElements.push_back(element);
    extras.push_back(body.insertArgument(
        unsigned(extras.size()) + 1, getElementTypeOrSelf(element.value), loc));
    return extras.back();
  }
  if (isa<BlockArgument>(element.value)) {
    // An operand of a linalg operation: the tensor's element, if it is one.
    auto argument = cast<BlockArgument>(element.value);
    auto op =
        dyn_cast_or_null<linalg::LinalgOp>(argument.getOwner()->getParentOp());
    auto from =
        op ? Elements::read(op, op->getOpOperand(argument.getArgNumber()),
                            element.at)
           : std::nullopt;
    return from ? build(b, *from, depth + 1) : Value();
  }
  Operation *op = element.value.getDefiningOp();
  if (auto index = dyn_cast<linalg::IndexOp>(op))
    return number(b, element.at[index.getDim()]);
  if (op->getNumRegions() != 0 || op->getNumResults() != 1 ||
      !isMemoryEffectFree(op) ||
      !llvm::is_contained({"arith", "math"}, op->getDialect()->getNamespace()))
    return {};
  IRMapping map;
  for (Value operand : op->getOperands()) {
    Value made = build(b, {operand, element.at}, depth + 1);
    if (!made)
      return {};
    map.map(operand, made);
  }
  return b.clone(*op, map)->getResult(0);
}

AffineMap AttentionBuilder::mapOf(const Element &element) {
  MLIRContext *context = found.root->getContext();
  SmallVector<std::optional<size_t>> order(found.batch.begin(),
                                           found.batch.end());
  if (found.batch.empty())
    order.push_back(std::nullopt);
  order.append({found.query, found.key, found.inHead, found.inValue});
  SmallVector<AffineExpr> results;
  for (const Index &index : element.at) {
    AffineExpr all = getAffineConstantExpr(index.back(), context);
    for (auto [dim, loop] : llvm::enumerate(order))
      if (loop && index[*loop] != 0)
        all = all + getAffineDimExpr(unsigned(dim), context) * index[*loop];
    results.push_back(all);
  }
  return AffineMap::get(unsigned(order.size()), 0, results, context);
}

spmd::AttentionOp AttentionBuilder::make() {
  OpBuilder b(found.root);
  Location loc = found.root.getLoc();
  Block &all = body;
  all.addArgument(getElementTypeOrSelf(found.scores->getResult(0)), loc);
  indices.assign(found.elements.loops.size(), Value());
  SmallVector<int64_t> sizes;
  for (size_t loop : found.batch) {
    sizes.push_back(found.elements.loops[loop]);
    indices[loop] = all.addArgument(b.getIndexType(), loc);
  }
  if (found.batch.empty()) {
    sizes.push_back(1);
    all.addArgument(b.getIndexType(), loc);
  }
  Value ofQuery = all.addArgument(b.getIndexType(), loc);
  if (found.query)
    indices[*found.query] = ofQuery;
  indices[*found.key] = all.addArgument(b.getIndexType(), loc);
  OpBuilder inside(b.getContext()); // the block is in no operation yet
  inside.setInsertionPointToEnd(&all);
  Value made = build(inside, found.score);
  if (!made || !isNarrowFloat(made.getType()))
    return {};
  spmd::ScoreOp::create(inside, loc, made);
  SmallVector<Value> inputs{found.q.value, found.k.value, found.v.value};
  SmallVector<Attribute> maps, extraMaps;
  for (const Element *each : {&found.q, &found.k, &found.v, &found.result})
    maps.push_back(AffineMapAttr::get(mapOf(*each)));
  for (const Element &each : extraElements) {
    inputs.push_back(each.value);
    extraMaps.push_back(AffineMapAttr::get(mapOf(each)));
  }
  auto sizeOf = [&](std::optional<size_t> loop) {
    return loop ? found.elements.loops[*loop] : 1;
  };
  // Sizes that no attention has keep their operations.
  ScopedDiagnosticHandler ignores(b.getContext(),
                                  [](Diagnostic &) { return success(); });
  auto fail = [&] { return found.root->emitOpError(); };
  auto of = ir::AttentionAttr::getChecked(
      llvm::function_ref<InFlightDiagnostic()>(fail), b.getContext(), sizes,
      sizeOf(found.query), sizeOf(found.key), sizeOf(found.inHead),
      sizeOf(found.inValue), b.getArrayAttr(maps), {});
  if (!of)
    return {};
  auto type = cast<RankedTensorType>(found.root->getResult(0).getType());
  Value init =
      tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  auto op = spmd::AttentionOp::create(b, loc, type, of,
                                      b.getArrayAttr(extraMaps), inputs, init);
  op.getBody().push_back(new Block);
  Block &into = op.getBody().front();
  for (BlockArgument argument : all.getArguments())
    argument.replaceAllUsesWith(into.addArgument(argument.getType(), loc));
  into.getOperations().splice(into.end(), all.getOperations());
  op->setAttr("mgpu.name", b.getStringAttr("attention"));
  if (auto name = found.root->getAttr("mgpu.name"))
    op->setAttr("mgpu.name", name);
  return op;
}

/// Makes the attention in front of the root; null where it is none.
spmd::AttentionOp attentionOf(linalg::LinalgOp root) {
  AttentionFinder finder(root);
  constexpr unsigned mostSplits = 8;
  for (unsigned k = 0;; ++k) {
    spmd::AttentionOp made =
        finder.find() ? AttentionBuilder(finder).make() : spmd::AttentionOp();
    if (k == mostSplits || !finder.needsSplit())
      return made;
    finder.restart();
  }
}

/// Erases operations that nobody reads any more.
void eraseUnread(Operation *first) {
  llvm::SetVector<Operation *> open;
  open.insert(first);
  while (!open.empty()) {
    Operation *op = open.pop_back_val();
    if (!isOpTriviallyDead(op))
      continue;
    for (Value operand : op->getOperands())
      if (Operation *from = operand.getDefiningOp())
        open.insert(from);
    op->erase();
  }
}

struct NameAttention : impl::NameAttentionBase<NameAttention> {
  using NameAttentionBase::NameAttentionBase;

  void runOnOperation() override {
    // From the last one on: what an attention replaces comes before it.
    SmallVector<linalg::LinalgOp> found;
    SmallVector<spmd::AttentionOp> made;
    getOperation().walk([&](linalg::LinalgOp op) {
      // A conversion of the result is a part of the attention.
      if (op->getNumResults() != 1 ||
          (op->hasOneUse() && onlyConverts(*op->user_begin())))
        return;
      if (spmd::AttentionOp attention = attentionOf(op)) {
        found.push_back(op);
        made.push_back(attention);
      }
    });
    for (auto [op, attention] : llvm::zip(found, made)) {
      const ir::AttentionAttr of = attention.getOf();
      const auto name = attention->getAttrOfType<StringAttr>("mgpu.name");
      remark::passed(
          attention.getLoc(),
          remark::RemarkOpts::name("attention").category("spmd-name-attention"))
          << StringRef(name.str() + " at " +
                       ir::describeLocation(attention.getLoc()) + ": " +
                       std::to_string(of.getBatchSize()) + " x " +
                       std::to_string(of.getQueries()) + " queries, " +
                       std::to_string(of.getKeys()) + " keys, in one launch");
      op->getResult(0).replaceAllUsesWith(attention->getResult(0));
    }
    for (linalg::LinalgOp op : llvm::reverse(found))
      eraseUnread(op);
  }
};

} // namespace

} // namespace mgpu::conversion

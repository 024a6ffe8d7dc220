// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A product keeps its text for GPUs and its tiles by its name, linalg.matmul or
// linalg.batch_matmul. Front ends write sums over any dimensions of their
// operands, in any order: what lies otherwise in memory is transposed first,
// where the product is worth it.
#include "dialect/conversion/FewVectors.h"
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/TensorShapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_NAMEPRODUCTS
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

using Loops = SmallVector<unsigned>;

/// The number of multiplications from which on a product is worth a launch that
/// transposes an operand.
constexpr int64_t leastProduct = leastMatrix * mostVectors;

/// A factor, and the loops that its dimensions follow: before transpositions of
/// it, and as the product is given it.
struct ProductFactor {
  Value value;
  Loops loops;
  Value given;
  Loops givenLoops;

  /// Whether one of both lies so.
  bool lies(const Loops &wanted) const {
    return loops == wanted || givenLoops == wanted;
  }
};

Loops joined(std::initializer_list<Loops> parts) {
  Loops all;
  for (const Loops &part : parts)
    llvm::append_range(all, part);
  return all;
}

/// Whether `value` is argument `k` of the body, or that as a wider float.
bool isFactor(Value value, Block &body, unsigned k) {
  if (auto wide = value.getDefiningOp<arith::ExtFOp>())
    value = wide.getIn();
  return value == body.getArgument(k);
}

/// Whether each step adds one product, as linalg.matmul does: in one operation,
/// where it is of f32 or f64 (ProductSteps.h).
bool addsProducts(linalg::GenericOp op) {
  constexpr auto contract = arith::FastMathFlags::contract;
  Block &body = *op.getBody();
  auto sum = body.getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  auto product = sum ? sum.getRhs().getDefiningOp<arith::MulFOp>() : nullptr;
  return product && sum.getLhs() == body.getArgument(2) &&
         bitEnumContainsAll(sum.getFastmath(), contract) &&
         bitEnumContainsAll(product.getFastmath(), contract) &&
         isFactor(product.getLhs(), body, 0) &&
         isFactor(product.getRhs(), body, 1);
}

/// The factor itself where `op` reads a transposition of it.
std::optional<ProductFactor> factorOf(linalg::LinalgOp op, OpOperand &operand) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  if (!map.isProjectedPermutation())
    return std::nullopt;
  ProductFactor factor{operand.get(), {}, operand.get(), {}};
  for (AffineExpr each : map.getResults())
    factor.loops.push_back(cast<AffineDimExpr>(each).getPosition());
  factor.givenLoops = factor.loops;
  while (auto turned = factor.value.getDefiningOp<linalg::TransposeOp>()) {
    Loops before(factor.loops.size());
    for (auto [to, from] : llvm::enumerate(turned.getPermutation()))
      before[from] = factor.loops[to];
    factor.value = turned.getInput();
    factor.loops = before;
  }
  return factor;
}

/// sums[batch, m, n] += lhs[...] * rhs[...] over all k.
class Namer {
public:
  explicit Namer(linalg::LinalgOp op) : op(op), b(op), loc(op.getLoc()) {}

  /// Whether it is such a product.
  bool find();
  /// False where the product stays as it is.
  bool name();

private:
  bool sortLoops();
  int64_t sizeOf(const Loops &loops) const {
    int64_t size = 1;
    for (unsigned each : loops)
      size *= ranges[each];
    return size;
  }
  Value transposed(const ProductFactor &factor, const Loops &wanted);
  /// The value as a matrix, or a batch of them, of so many rows and columns.
  Value matrix(Value value, int64_t rows, int64_t columns);

  linalg::LinalgOp op;
  OpBuilder b;
  Location loc;
  SmallVector<int64_t> ranges; ///< of all loops
  ProductFactor lhs, rhs;
  Loops batch, m, n, k;
};

/// Sorts the loops by the operands that follow them; false where an operand or
/// the order of the sums is not that of a product.
bool Namer::sortLoops() {
  AffineMap sums = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (!sums.isProjectedPermutation())
    return false;
  Loops out;
  for (AffineExpr each : sums.getResults())
    out.push_back(cast<AffineDimExpr>(each).getPosition());
  auto has = [](const Loops &loops, unsigned each) {
    return llvm::is_contained(loops, each);
  };
  for (unsigned each : out)
    if (has(lhs.loops, each))
      (has(rhs.loops, each) ? batch : m).push_back(each);
    else
      n.push_back(each);
  for (unsigned each = 0; each < ranges.size(); ++each)
    if (!has(out, each))
      k.push_back(each);
  auto holds = [&](const Loops &loops, std::initializer_list<Loops> parts) {
    const Loops all = joined(parts);
    return loops.size() == all.size() &&
           llvm::all_of(all, [&](unsigned each) { return has(loops, each); });
  };
  return out == joined({batch, m, n}) && holds(lhs.loops, {batch, m, k}) &&
         holds(rhs.loops, {batch, k, n});
}

bool Namer::find() {
  auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
  const bool isNamed =
      isa<linalg::MatmulOp, linalg::BatchMatmulOp>(op.getOperation());
  if ((!generic && !isNamed) || !op.hasPureTensorSemantics() ||
      op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1)
    return false;
  ranges = op.getStaticLoopRanges();
  if (ShapedType::isDynamicShape(ranges))
    return false;
  OpOperand *left = op.getDpsInputOperand(0), *right = op.getDpsInputOperand(1);
  const Type element = getElementTypeOrSelf(left->get());
  if (!isa<FloatType>(element) ||
      element != getElementTypeOrSelf(right->get()) ||
      (generic && !addsProducts(generic)))
    return false;
  auto first = factorOf(op, *left), second = factorOf(op, *right);
  if (!first || !second ||
      (isNamed && first->value == left->get() &&
       second->value == right->get())) // as its author wants it
    return false;
  lhs = *first;
  rhs = *second;
  return sortLoops();
}

Value Namer::transposed(const ProductFactor &factor, const Loops &wanted) {
  if (factor.lies(wanted))
    return factor.loops == wanted ? factor.value : factor.given;
  SmallVector<int64_t> order;
  for (unsigned each : wanted)
    order.push_back(llvm::find(factor.loops, each) - factor.loops.begin());
  return transposedTensor(b, loc, factor.value, order);
}

Value Namer::matrix(Value value, int64_t rows, int64_t columns) {
  if (batch.empty())
    return reshapedTensor(b, loc, value, {rows, columns});
  return reshapedTensor(b, loc, value, {sizeOf(batch), rows, columns});
}

bool Namer::name() {
  const int64_t rows = sizeOf(m), columns = sizeOf(n), terms = sizeOf(k),
                all = sizeOf(batch) * rows * columns * terms;
  const Loops inA = joined({batch, m, k}), plain = joined({batch, k, n}),
              turned = joined({batch, n, k});
  // Few vectors take less time than the transposition of a matrix.
  const bool isLarge = all >= leastProduct;
  const bool isMatrix = rhs.lies(plain) || rhs.lies(turned);
  if (all == 0 || (!lhs.lies(inA) && !(isLarge && columns > mostVectors)) ||
      (!isMatrix && !(isLarge && rows > mostVectors)))
    return false;
  // Dimensions that lie next to each other stay so.
  const bool isTurned =
      rhs.loops != plain &&
      (rhs.loops == turned ||
       (!rhs.lies(plain) &&
        (isMatrix || llvm::is_contained(k, rhs.loops.back()))));
  const bool isBatch = !batch.empty();
  if (isTurned && rows <= mostVectorsOf(getElementTypeOrSelf(lhs.value)) &&
      (isBatch || columns * terms < leastMatrix))
    return false; // a sum of no special form
  // A row by a row is one, too, and a GPU has no more blocks along z.
  if (isBatch && ((rows == 1 && columns == 1) || sizeOf(batch) > 65535))
    return false;
  const Value first = matrix(transposed(lhs, inA), rows, terms);
  const Value second = isTurned
                           ? matrix(transposed(rhs, turned), columns, terms)
                           : matrix(transposed(rhs, plain), terms, columns);
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  const Value sums = matrix(op.getDpsInitOperand(0)->get(), rows, columns);
  const SmallVector<Value> factors{first, second};
  auto make = [&](auto plainOp, auto turnedOp) -> Operation * {
    if (isTurned)
      return decltype(turnedOp)::create(b, loc, factors, ValueRange(sums));
    return decltype(plainOp)::create(b, loc, factors, ValueRange(sums));
  };
  Operation *made =
      batch.empty()
          ? make(linalg::MatmulOp(), linalg::MatmulTransposeBOp())
          : make(linalg::BatchMatmulOp(), linalg::BatchMatmulTransposeBOp());
  if (auto name = op->getAttr("mgpu.name"))
    made->setAttr("mgpu.name", name);
  op->getResult(0).replaceAllUsesWith(
      reshapedTensor(b, loc, made->getResult(0), type.getShape()));
  op->erase();
  return true;
}

struct NameProducts : impl::NameProductsBase<NameProducts> {
  using NameProductsBase::NameProductsBase;

  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> all; // none of which this erases early
    getOperation().walk([&](linalg::LinalgOp op) {
      if (!isa<linalg::TransposeOp>(op.getOperation()))
        all.push_back(op);
    });
    for (linalg::LinalgOp op : all)
      if (Namer namer(op); namer.find()) {
        llvm::SmallSetVector<Value, 2> read(op->getOperands().begin(),
                                            op->getOperands().end());
        if (!namer.name())
          continue;
        for (Value each : read)
          if (auto turned = each.getDefiningOp<linalg::TransposeOp>();
              turned && turned->use_empty())
            turned->erase();
      }
  }
};

} // namespace

} // namespace mgpu::conversion

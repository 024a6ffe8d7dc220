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

/// sums[batch, m, n] += a[...] * b[...] over all k.
struct Product {
  linalg::LinalgOp op;
  ProductFactor a, b;
  Loops batch, m, n, k;

  int64_t sizeOf(const Loops &loops) const {
    int64_t size = 1;
    for (unsigned each : loops)
      size *= ranges[each];
    return size;
  }
  SmallVector<int64_t> ranges; ///< of all loops
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
/// where it is of f32 (ProductSteps.h).
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

/// Sorts the loops by the operands that follow them; false where an operand or
/// the order of the sums is not that of a product.
bool sortLoops(Product &product) {
  AffineMap sums =
      product.op.getMatchingIndexingMap(product.op.getDpsInitOperand(0));
  if (!sums.isProjectedPermutation())
    return false;
  Loops out;
  for (AffineExpr each : sums.getResults())
    out.push_back(cast<AffineDimExpr>(each).getPosition());
  auto has = [](const Loops &loops, unsigned each) {
    return llvm::is_contained(loops, each);
  };
  for (unsigned each : out)
    if (has(product.a.loops, each))
      (has(product.b.loops, each) ? product.batch : product.m).push_back(each);
    else
      product.n.push_back(each);
  for (unsigned each = 0; each < product.ranges.size(); ++each)
    if (!has(out, each))
      product.k.push_back(each);
  auto holds = [&](const Loops &loops, std::initializer_list<Loops> parts) {
    const Loops all = joined(parts);
    return loops.size() == all.size() &&
           llvm::all_of(all, [&](unsigned each) { return has(loops, each); });
  };
  return out == joined({product.batch, product.m, product.n}) &&
         holds(product.a.loops, {product.batch, product.m, product.k}) &&
         holds(product.b.loops, {product.batch, product.k, product.n});
}

std::optional<Product> productOf(linalg::LinalgOp op) {
  auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
  const bool isNamed =
      isa<linalg::MatmulOp, linalg::BatchMatmulOp>(op.getOperation());
  if ((!generic && !isNamed) || !op.hasPureTensorSemantics() ||
      op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 ||
      ShapedType::isDynamicShape(op.getStaticLoopRanges()))
    return std::nullopt;
  OpOperand *a = op.getDpsInputOperand(0), *b = op.getDpsInputOperand(1);
  const Type element = getElementTypeOrSelf(a->get());
  if (!isa<FloatType>(element) || element != getElementTypeOrSelf(b->get()) ||
      (generic && !addsProducts(generic)))
    return std::nullopt;
  auto left = factorOf(op, *a), right = factorOf(op, *b);
  if (!left || !right)
    return std::nullopt;
  if (isNamed && left->value == a->get() && right->value == b->get())
    return std::nullopt; // as its author wants it
  Product product{op, *left, *right, {}, {}, {}, {}, op.getStaticLoopRanges()};
  return sortLoops(product) ? std::optional(product) : std::nullopt;
}

class Namer {
public:
  explicit Namer(Product &product)
      : of(product), b(product.op), loc(product.op.getLoc()) {}

  /// False where the product stays as it is.
  bool name();

private:
  Value transposed(const ProductFactor &factor, const Loops &wanted);
  /// The value as a matrix, or a batch of them, of so many rows and columns.
  Value matrix(Value value, int64_t rows, int64_t columns);

  Product &of;
  OpBuilder b;
  Location loc;
};

Value Namer::transposed(const ProductFactor &factor, const Loops &wanted) {
  if (factor.lies(wanted))
    return factor.loops == wanted ? factor.value : factor.given;
  SmallVector<int64_t> order;
  for (unsigned each : wanted)
    order.push_back(llvm::find(factor.loops, each) - factor.loops.begin());
  return transposedTensor(b, loc, factor.value, order);
}

Value Namer::matrix(Value value, int64_t rows, int64_t columns) {
  if (of.batch.empty())
    return reshapedTensor(b, loc, value, {rows, columns});
  return reshapedTensor(b, loc, value, {of.sizeOf(of.batch), rows, columns});
}

bool Namer::name() {
  const int64_t m = of.sizeOf(of.m), n = of.sizeOf(of.n), k = of.sizeOf(of.k),
                all = of.sizeOf(of.batch) * m * n * k;
  const Loops inA = joined({of.batch, of.m, of.k}),
              plain = joined({of.batch, of.k, of.n}),
              turned = joined({of.batch, of.n, of.k});
  // Few vectors take less time than the transposition of a matrix.
  const bool isLarge = all >= leastProduct;
  const bool isMatrix = of.b.lies(plain) || of.b.lies(turned);
  if (all == 0 || (!of.a.lies(inA) && !(isLarge && n > mostVectors)) ||
      (!isMatrix && !(isLarge && m > mostVectors)))
    return false;
  // Dimensions that lie next to each other stay so.
  const bool isTurned =
      of.b.loops != plain &&
      (of.b.loops == turned ||
       (!of.b.lies(plain) &&
        (isMatrix || llvm::is_contained(of.k, of.b.loops.back()))));
  const bool isBatch = !of.batch.empty();
  if (isTurned && m <= mostVectorsOf(getElementTypeOrSelf(of.a.value)) &&
      (isBatch || n * k < leastMatrix))
    return false; // a sum of no special form
  // A row by a row is one, too, and a GPU has no more blocks along z.
  if (isBatch && ((m == 1 && n == 1) || of.sizeOf(of.batch) > 65535))
    return false;
  const Value lhs = matrix(transposed(of.a, inA), m, k);
  const Value rhs = isTurned ? matrix(transposed(of.b, turned), n, k)
                             : matrix(transposed(of.b, plain), k, n);
  auto type = cast<RankedTensorType>(of.op->getResult(0).getType());
  const Value sums = matrix(of.op.getDpsInitOperand(0)->get(), m, n);
  const SmallVector<Value> factors{lhs, rhs};
  auto make = [&](auto plainOp, auto turnedOp) -> Operation * {
    if (isTurned)
      return decltype(turnedOp)::create(b, loc, factors, ValueRange(sums));
    return decltype(plainOp)::create(b, loc, factors, ValueRange(sums));
  };
  Operation *made =
      of.batch.empty()
          ? make(linalg::MatmulOp(), linalg::MatmulTransposeBOp())
          : make(linalg::BatchMatmulOp(), linalg::BatchMatmulTransposeBOp());
  if (auto name = of.op->getAttr("mgpu.name"))
    made->setAttr("mgpu.name", name);
  of.op->getResult(0).replaceAllUsesWith(
      reshapedTensor(b, loc, made->getResult(0), type.getShape()));
  of.op->erase();
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
      if (auto product = productOf(op)) {
        llvm::SmallSetVector<Value, 2> read(op->getOperands().begin(),
                                            op->getOperands().end());
        if (!Namer(*product).name())
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

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/FewVectors.h"
#include "dialect/conversion/stablehlo/Lowering.h"
#include "dialect/conversion/stablehlo/Windows.h"
#include "dialect/stablehlo/StablehloDialect.h"

#include <numeric>
#include <optional>

namespace mgpu::conversion {

// Matrix products, and the sums that they and convolutions are.

using namespace mlir;
using namespace mgpu::stablehlo;

Type sumType(Type result) {
  auto type = dyn_cast<FloatType>(result);
  return type && type.getWidth() < 32 ? Float32Type::get(type.getContext())
                                      : result;
}

static Value zeros(Lowering &low, RankedTensorType type) {
  return low.filledWith(type,
                        arith::ConstantOp::create(
                            low.b, low.b.getZeroAttr(type.getElementType())));
}

/// `sum` as the element type of the result.
static Value rounded(Lowering &low, Value sum, Type element) {
  auto type = cast<RankedTensorType>(sum.getType());
  if (type.getElementType() == element)
    return sum;
  return low.elementwise(
      type.clone(element), sum, [&](ImplicitLocOpBuilder &b, ValueRange in) {
        return SmallVector<Value>{castFloat(b, in[0], element)};
      });
}

Value makeSum(Lowering &low, const Products &of) {
  Type element = signlessTensor(of.op->getResult(0)).getElementType();
  Type wide = sumType(element);
  SmallVector<Type> from;
  for (Value factor : of.op->getOperands())
    from.push_back(getElementTypeOrSelf(factor.getType()));
  Generic generic;
  generic.inputs = {of.lhs, of.rhs};
  generic.inits = {zeros(low, RankedTensorType::get(of.shape, wide))};
  generic.maps = {of.lhsMap, of.rhsMap, of.sumMap};
  generic.parallel = of.parallel;
  generic.reduction = of.reduction;
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange in) {
    Value x = convertNumber(b, in[0], from[0], wide);
    Value y = convertNumber(b, in[1], from[1], wide);
    if (isa<FloatType>(wide)) {
      // It adds as linalg.matmul does: in one operation, of f32 and f64.
      constexpr auto contract = arith::FastMathFlags::contract;
      Value product = arith::MulFOp::create(b, x, y, contract);
      return SmallVector<Value>{
          arith::AddFOp::create(b, in[2], product, contract)};
    }
    if (wide.isInteger(1))
      return SmallVector<Value>{arith::OrIOp::create(
          b, in[2], arith::AndIOp::create(b, x, y).getResult())};
    return SmallVector<Value>{arith::AddIOp::create(
        b, in[2], arith::MulIOp::create(b, x, y).getResult())};
  };
  Value sum = rounded(low, low.generic(generic, body)[0], element);
  return low.kept(sum, getElementTypeOrSelf(of.op->getResult(0).getType()));
}

namespace {

/// The dimensions of a product.
struct ProductDims {
  ArrayRef<int64_t> lhsBatch, rhsBatch, lhsSum, rhsSum;
  SmallVector<int64_t> lhsFree, rhsFree;

  ProductDims(ArrayRef<int64_t> lhsBatch, ArrayRef<int64_t> rhsBatch,
              ArrayRef<int64_t> lhsSum, ArrayRef<int64_t> rhsSum,
              int64_t lhsRank, int64_t rhsRank)
      : lhsBatch(lhsBatch), rhsBatch(rhsBatch), lhsSum(lhsSum), rhsSum(rhsSum) {
    for (int64_t k = 0; k < lhsRank; ++k)
      if (!llvm::is_contained(lhsBatch, k) && !llvm::is_contained(lhsSum, k))
        lhsFree.push_back(k);
    for (int64_t k = 0; k < rhsRank; ++k)
      if (!llvm::is_contained(rhsBatch, k) && !llvm::is_contained(rhsSum, k))
        rhsFree.push_back(k);
  }
};

Value makeProduct(Lowering &low, Operation *op, const ProductDims &dims) {
  auto lhsType = signlessTensor(op->getOperand(0));
  auto rhsType = signlessTensor(op->getOperand(1));
  RankedTensorType type = signlessTensor(op->getResult(0));
  SmallVector<AffineExpr> lhs(lhsType.getRank()), rhs(rhsType.getRank());
  unsigned next = 0;
  for (auto [x, y] : llvm::zip(dims.lhsBatch, dims.rhsBatch))
    lhs[x] = rhs[y] = low.dim(next++);
  for (int64_t x : dims.lhsFree)
    lhs[x] = low.dim(next++);
  for (int64_t y : dims.rhsFree)
    rhs[y] = low.dim(next++);
  unsigned parallel = next;
  for (auto [x, y] : llvm::zip(dims.lhsSum, dims.rhsSum))
    lhs[x] = rhs[y] = low.dim(next++);
  MLIRContext *context = low.b.getContext();
  auto map = [&](ArrayRef<AffineExpr> places) {
    return AffineMap::get(next, 0, places, context);
  };
  SmallVector<AffineExpr> sum; // of none for a number
  for (unsigned k = 0; k < parallel; ++k)
    sum.push_back(low.dim(k));
  return makeSum(low, {op, low[op->getOperand(0)], low[op->getOperand(1)],
                       llvm::to_vector(type.getShape()), map(lhs), map(rhs),
                       map(sum), parallel, next - parallel});
}

LogicalResult lowerDotGeneral(Lowering &low, DotGeneralOp op) {
  DotDimensionNumbersAttr numbers = op.getDotDimensionNumbers();
  ProductDims dims(numbers.getLhsBatchingDimensions(),
                   numbers.getRhsBatchingDimensions(),
                   numbers.getLhsContractingDimensions(),
                   numbers.getRhsContractingDimensions(),
                   cast<ShapedType>(op.getLhs().getType()).getRank(),
                   cast<ShapedType>(op.getRhs().getType()).getRank());
  low.set(op.getResult(), makeProduct(low, op, dims));
  return success();
}

LogicalResult lowerDot(Lowering &low, DotOp op) {
  int64_t lhsRank = cast<ShapedType>(op.getLhs().getType()).getRank();
  int64_t rhsRank = cast<ShapedType>(op.getRhs().getType()).getRank();
  int64_t last = lhsRank - 1, first = 0;
  ProductDims dims({}, {}, last, first, lhsRank, rhsRank);
  low.set(op.getResult(), makeProduct(low, op, dims));
  return success();
}

} // namespace

ArrayRef<NamedFamily> contractionFamily() {
  static const NamedFamily all[] = {
      family<DotOp, lowerDot>(),
      family<DotGeneralOp, lowerDotGeneral>(),
  };
  return all;
}

namespace {

/// The dimensions of a tensor of a convolution. Where there are groups, one of
/// its dimensions is split in two.
struct ConvolutionDims {
  SmallVector<AffineExpr> places;
  SmallVector<int64_t> shape;

  /// `outer` and `inner` go through dimension `k`, of which there are `groups`.
  void split(int64_t k, int64_t groups, AffineExpr outer, AffineExpr inner) {
    if (groups == 1) {
      places[k] = inner;
      return;
    }
    places.insert(places.begin() + k, outer);
    places[k + 1] = inner;
    shape.insert(shape.begin() + k, groups);
    shape[k + 1] /= groups;
  }
};

/// The most elements of a convolution's columns, each of which stands in them
/// as often as windows have it.
constexpr int64_t mostColumns = int64_t(1) << 26;

class Convolution {
public:
  Convolution(Lowering &low, ConvolutionOp op)
      : low(low), op(op), numbers(op.getDimensionNumbers()),
        spatial(numbers.getInputSpatialDimensions().size()),
        byFeature(op.getFeatureGroupCount()), byBatch(op.getBatchGroupCount()),
        groups(byFeature * byBatch), filter(kernel()),
        result(signlessTensor(op.getResult())),
        strides(numbersOr(op.getWindowStrides(), spatial, 1)),
        spread(numbersOr(op.getLhsDilation(), spatial, 1)),
        dilation(numbersOr(op.getRhsDilation(), spatial, 1)),
        padding(paddingOf(op.getPadding(), spatial)) {}
  Value make() {
    Value whole = makeByResidues();
    return whole ? whole : makeWhole();
  }

private:
  Value makeWhole();
  Value makeByResidues();
  bool takeResidue(unsigned k, int64_t residue);
  Value paddedInput();
  Value kernel();
  int64_t filterSize(unsigned k) const {
    return cast<RankedTensorType>(filter.getType())
        .getDimSize(numbers.getKernelSpatialDimensions()[k]);
  }
  /// The sums, whose points are `parallel` dimensions of the result, the window
  /// and the input's features. `sizes` are those of all.
  Value sums(Products of, ArrayRef<int64_t> sizes);
  SmallVector<unsigned> termsOf(unsigned begin, unsigned end) const;
  bool isProduct(const Products &of, ArrayRef<int64_t> sizes) const;
  Value pointsOf(Value tensor, AffineMap places, ArrayRef<unsigned> order,
                 ArrayRef<int64_t> sizes, ArrayRef<int64_t> shape);
  static ConvolutionDims dimsOf(Value tensor) {
    auto type = cast<RankedTensorType>(tensor.getType());
    return {SmallVector<AffineExpr>(type.getRank()),
            llvm::to_vector(type.getShape())};
  }

  Lowering &low;
  ConvolutionOp op;
  ConvDimensionNumbersAttr numbers;
  unsigned spatial;
  int64_t byFeature, byBatch, groups;
  Value filter;
  RankedTensorType result;
  SmallVector<int64_t> strides, spread, dilation; ///< spread: of the input
  Padding padding;
};

Value Convolution::paddedInput() {
  Value input = low[op.getLhs()];
  auto type = cast<RankedTensorType>(input.getType());
  unsigned rank = type.getRank();
  SmallVector<int64_t> lowEnds(rank, 0), highEnds(rank, 0), between(rank, 0);
  for (auto [k, dimension] :
       llvm::enumerate(numbers.getInputSpatialDimensions())) {
    lowEnds[dimension] = padding.low[k];
    highEnds[dimension] = padding.high[k];
    between[dimension] = spread[k] - 1;
  }
  Value zero = arith::ConstantOp::create(
      low.b, low.b.getZeroAttr(type.getElementType()));
  auto fill = [&](RankedTensorType made) { return low.filledWith(made, zero); };
  return low.padded(input, fill, lowEnds, highEnds, between);
}

Value Convolution::kernel() {
  SmallVector<int64_t> dimensions;
  if (auto reversal = op.getWindowReversal())
    for (auto [k, isReversed] : llvm::enumerate(*reversal))
      if (isReversed)
        dimensions.push_back(numbers.getKernelSpatialDimensions()[k]);
  return low.reversed(low[op.getRhs()], dimensions);
}

/// The part of the result whose places along spatial dimension `k` are
/// `residue` and every spread[k]-th after it: its windows meet elements of the
/// input at some of their places alone, always the same. False where there are
/// none.
bool Convolution::takeResidue(unsigned k, int64_t residue) {
  const int64_t every = spread[k], size = filterSize(k),
                out =
                    result.getDimSize(numbers.getOutputSpatialDimensions()[k]);
  int64_t first = 0;
  int64_t at = residue - padding.low[k]; // in the input that is spread
  for (; first < size && at % every != 0; ++first)
    at += dilation[k];
  if (first == size || residue >= out)
    return false;
  const int64_t step = every / std::gcd(every, dilation[k]),
                count = (size - 1 - first) / step + 1,
                points = (out - 1 - residue) / every + 1;
  const int64_t kernelDim = numbers.getKernelSpatialDimensions()[k];
  auto type = cast<RankedTensorType>(filter.getType());
  SmallVector<int64_t> begin(type.getRank(), 0), steps(type.getRank(), 1),
      counts = llvm::to_vector(type.getShape());
  begin[kernelDim] = first;
  steps[kernelDim] = step;
  counts[kernelDim] = count;
  filter = low.sliced(filter, begin, counts, steps);
  const int64_t input = cast<RankedTensorType>(op.getLhs().getType())
                            .getDimSize(numbers.getInputSpatialDimensions()[k]);
  dilation[k] = step * dilation[k] / every;
  padding.low[k] = -at / every;
  padding.high[k] = points + (count - 1) * dilation[k] - padding.low[k] - input;
  spread[k] = 1;
  SmallVector<int64_t> shape = llvm::to_vector(result.getShape());
  shape[numbers.getOutputSpatialDimensions()[k]] = points;
  result = result.clone(shape);
  return true;
}

/// Where the input is spread, most of what windows see is the zeros between: a
/// convolution for each residue of the result's places leaves them out. Null
/// where that would be many small ones.
Value Convolution::makeByResidues() {
  constexpr int64_t most = 16, least = 1 << 18;
  SmallVector<int64_t> classes(spatial, 1);
  int64_t count = 1, work = result.getNumElements();
  for (unsigned k = 0; k < spatial; ++k) {
    if (strides[k] == 1)
      classes[k] = spread[k];
    if (classes[k] > most || (count *= classes[k]) > most)
      return {};
    work *= filterSize(k);
  }
  work *= cast<RankedTensorType>(filter.getType())
              .getDimSize(numbers.getKernelInputFeatureDimension());
  if (count == 1 || work < least)
    return {};
  Value zero = arith::ConstantOp::create(
      low.b, low.b.getZeroAttr(result.getElementType()));
  Value whole = low.filledWith(result, zero);
  for (int64_t index = 0; index < count; ++index) {
    Convolution part = *this;
    SmallVector<OpFoldResult> begin(result.getRank(), low.b.getIndexAttr(0)),
        steps(result.getRank(), low.b.getIndexAttr(1));
    bool isAny = true;
    int64_t rest = index;
    for (unsigned k = 0; k < spatial && isAny; ++k) {
      const int64_t residue = rest % classes[k];
      rest /= classes[k];
      const int64_t at = numbers.getOutputSpatialDimensions()[k];
      begin[at] = low.b.getIndexAttr(residue);
      steps[at] = low.b.getIndexAttr(classes[k]);
      isAny = classes[k] == 1 || part.takeResidue(k, residue);
    }
    if (isAny)
      whole = tensor::InsertSliceOp::create(
          low.b, part.makeWhole(), whole, begin,
          getAsIndexOpFoldResult(low.b.getContext(), part.result.getShape()),
          steps);
  }
  return whole;
}

Value Convolution::makeWhole() {
  Value input = paddedInput();
  ConvolutionDims lhs = dimsOf(input), rhs = dimsOf(filter),
                  out{SmallVector<AffineExpr>(result.getRank()),
                      llvm::to_vector(result.getShape())};
  // The points: the dimensions of the result, its features split by groups;
  // then those of the window, and the input's features.
  int64_t feature = numbers.getOutputFeatureDimension();
  unsigned parallel = result.getRank() + (groups > 1);
  auto ofResult = [&](int64_t k) {
    return low.dim(k + (groups > 1 && k >= feature));
  };
  AffineExpr group = low.dim(feature);
  AffineExpr channel = low.dim(parallel + spatial);
  AffineExpr batch = ofResult(numbers.getOutputBatchDimension());
  for (unsigned k = 0; k < spatial; ++k) {
    AffineExpr at = ofResult(numbers.getOutputSpatialDimensions()[k]);
    AffineExpr inWindow = low.dim(parallel + k);
    lhs.places[numbers.getInputSpatialDimensions()[k]] =
        at * strides[k] + inWindow * dilation[k];
    rhs.places[numbers.getKernelSpatialDimensions()[k]] = inWindow;
    out.places[numbers.getOutputSpatialDimensions()[k]] = at;
  }
  int64_t inBatch = numbers.getInputBatchDimension();
  int64_t inFeature = numbers.getInputFeatureDimension();
  lhs.places[inBatch] = batch;
  lhs.places[inFeature] = channel;
  if (byFeature > 1)
    lhs.split(inFeature, groups, group, channel);
  else
    lhs.split(inBatch, groups, group, batch);
  rhs.places[numbers.getKernelInputFeatureDimension()] = channel;
  rhs.split(numbers.getKernelOutputFeatureDimension(), groups, group,
            ofResult(feature));
  out.places[numbers.getOutputBatchDimension()] = batch;
  out.split(feature, groups, group, ofResult(feature));
  unsigned count = parallel + spatial + 1;
  auto map = [&](ArrayRef<AffineExpr> places) {
    return AffineMap::get(count, 0, places, low.b.getContext());
  };
  auto filterType = cast<RankedTensorType>(filter.getType());
  SmallVector<int64_t> sizes = out.shape;
  for (int64_t k : numbers.getKernelSpatialDimensions())
    sizes.push_back(filterType.getDimSize(k));
  sizes.push_back(
      filterType.getDimSize(numbers.getKernelInputFeatureDimension()));
  Value sum = sums({op, low.reshaped(input, lhs.shape),
                    low.reshaped(filter, rhs.shape), out.shape, map(lhs.places),
                    map(rhs.places), map(out.places), parallel, spatial + 1},
                   sizes);
  return low.reshaped(sum, result.getShape());
}

/// Where one product is many times what its columns take to be written. Behind
/// the features of a group, groups would be strided.
bool Convolution::isProduct(const Products &of, ArrayRef<int64_t> sizes) const {
  const Type element = getElementTypeOrSelf(of.lhs.getType());
  const unsigned feature = numbers.getOutputFeatureDimension() + (groups > 1);
  const bool isLast = feature + 1 == of.parallel;
  int64_t points = 1, terms = 1, filters = 1;
  for (unsigned k = 0; k < of.parallel; ++k) {
    points *= k == feature ? 1 : sizes[k];
    filters *= k < feature && !isLast ? sizes[k] : 1; // each of a batch's
  }
  for (unsigned k = of.parallel; k < sizes.size(); ++k)
    terms *= sizes[k];
  constexpr int64_t least = 8;
  return isa<FloatType>(element) &&
         element == getElementTypeOrSelf(of.rhs.getType()) &&
         (groups == 1 || !isLast) && sizes[feature] >= least &&
         points >= least * groups && terms >= least &&
         points <= mostColumns / terms &&
         filters <= mostColumns / terms / sizes[feature];
}

/// `tensor` as points of the dimensions `order`, each where `places` has it,
/// reshaped to `shape`.
Value Convolution::pointsOf(Value tensor, AffineMap places,
                            ArrayRef<unsigned> order, ArrayRef<int64_t> sizes,
                            ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(tensor.getType());
  // Without dimensions of size 1, but for those that keep an index from being
  // one of a whole dimension of the tensor where it is not.
  SmallVector<int64_t> made;
  auto placesOf = [&](int64_t least) {
    SmallVector<AffineExpr> at(sizes.size(), low.b.getAffineConstantExpr(0));
    made.clear();
    for (unsigned k : order)
      if (sizes[k] >= least) {
        at[k] = low.dim(made.size());
        made.push_back(sizes[k]);
      }
    return simplifyAffineMap(
        places.replaceDimsAndSymbols(at, {}, made.size(), 0));
  };
  AffineMap map = placesOf(2);
  SmallVector<AffineExpr> moving;
  bool isPart = false;
  for (auto [k, each] : llvm::enumerate(map.getResults())) {
    if (!isa<AffineConstantExpr>(each))
      moving.push_back(each);
    auto dim = dyn_cast<AffineDimExpr>(each);
    isPart |= dim && made[dim.getPosition()] != type.getDimSize(k);
  }
  const bool isAsItIs =
      type.getNumElements() == ShapedType::getNumElements(made) &&
      AffineMap::get(made.size(), 0, moving, low.b.getContext()).isIdentity();
  if (isPart)
    map = placesOf(1);
  Generic of;
  of.parallel = made.size();
  of.inputs = {tensor};
  of.inits = {low.empty(RankedTensorType::get(made, type.getElementType()))};
  of.maps = {map, low.b.getMultiDimIdentityMap(made.size())};
  Value points = tensor;
  if (!isAsItIs)
    points = low.generic(of, [](ImplicitLocOpBuilder &, ValueRange in) {
      return SmallVector<Value>{in[0]};
    })[0];
  return low.reshaped(points, shape);
}

/// The dimensions of the terms in the kernel's order, in which its channels
/// often come first.
SmallVector<unsigned> Convolution::termsOf(unsigned begin, unsigned end) const {
  auto terms = llvm::to_vector(llvm::seq(begin, end));
  if (spatial && numbers.getKernelInputFeatureDimension() <
                     numbers.getKernelSpatialDimensions()[0])
    std::rotate(terms.begin(), terms.end() - 1, terms.end());
  return terms;
}

Value Convolution::sums(Products of, ArrayRef<int64_t> sizes) {
  if (!isProduct(of, sizes))
    return makeSum(low, of);
  const unsigned feature = numbers.getOutputFeatureDimension() + (groups > 1);
  const bool isLast = feature + 1 == of.parallel;
  // Outer points with groups, features, terms, inner points.
  auto count = [&](ArrayRef<unsigned> dims) {
    int64_t all = 1;
    for (unsigned k : dims)
      all *= sizes[k];
    return all;
  };
  const auto before = llvm::to_vector(llvm::seq(0u, feature)),
             after = llvm::to_vector(llvm::seq(feature + 1, of.parallel)),
             ofTerms = termsOf(of.parallel, sizes.size());
  const int64_t outer = count(before), inner = count(after),
                terms = count(ofTerms);
  // The longer of windows and points along the last dimension is innermost;
  // few rows of either are no product by rows.
  const int64_t features = sizes[feature];
  const bool isByRows = !isLast && spatial &&
                        std::max(features, inner) > mostVectors &&
                        sizes[ofTerms.back()] > sizes[after.back()],
             isTurned = isByRows && features <= mostVectors;
  SmallVector<unsigned> columns = before, filters;
  columns.append(isByRows ? after : ofTerms);
  columns.append(isByRows ? ofTerms : after);
  if (!isLast) // each batch has a matrix of its own
    filters = before;
  filters.push_back(feature);
  filters.append(ofTerms);
  auto map = [&](unsigned count, ArrayRef<unsigned> dims) {
    return AffineMap::getMultiDimMapWithTargets(count, dims,
                                                low.b.getContext());
  };
  const SmallVector<int64_t> shape = std::move(of.shape);
  if (isLast) { // points times features
    std::rotate(filters.begin(), filters.begin() + 1, filters.end());
    of.lhs = pointsOf(of.lhs, of.lhsMap, columns, sizes, {outer, terms});
    of.rhs = pointsOf(of.rhs, of.rhsMap, filters, sizes, {terms, features});
    of.shape = {outer, features};
    of.lhsMap = map(3, {0, 2});
    of.rhsMap = map(3, {2, 1});
    of.sumMap = map(3, {0, 1});
    of.parallel = 2;
  } else { // features times points
    SmallVector<int64_t> made = {outer, terms, inner};
    if (isByRows)
      std::swap(made[1], made[2]);
    Value points = pointsOf(of.lhs, of.lhsMap, columns, sizes, made);
    of.lhs =
        pointsOf(of.rhs, of.rhsMap, filters, sizes, {outer, features, terms});
    of.rhs = points;
    of.shape = {outer, features, inner};
    of.lhsMap = map(4, {0, 1, 3});
    of.rhsMap = isByRows ? map(4, {0, 2, 3}) : map(4, {0, 3, 2});
    of.sumMap = map(4, {0, 1, 2});
    of.parallel = 3;
  }
  of.reduction = 1;
  if (isTurned) { // points times features
    std::swap(of.lhs, of.rhs);
    of.shape = {outer, inner, features};
    return low.reshaped(low.transposed(makeSum(low, of), {0, 2, 1}), shape);
  }
  return low.reshaped(makeSum(low, of), shape);
}

LogicalResult lowerConvolution(Lowering &low, ConvolutionOp op) {
  low.set(op.getResult(), Convolution(low, op).make());
  return success();
}

} // namespace

ArrayRef<NamedFamily> convolutionFamily() {
  static const NamedFamily all[] = {family<ConvolutionOp, lowerConvolution>()};
  return all;
}

} // namespace mgpu::conversion

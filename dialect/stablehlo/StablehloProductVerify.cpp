// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules of products, convolutions and solvers.
#include "dialect/stablehlo/StablehloRules.h"

using namespace mlir;
using namespace mgpu::stablehlo;

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static LogicalResult checkPrecision(Operation *op,
                                    std::optional<ArrayAttr> precision) {
  if (!precision || precision->empty())
    return success();
  return checkCount(op, "precision", precision->size(), 2);
}

LogicalResult DotOp::verify() {
  ArrayRef<int64_t> lhs = shapeOf(getLhs()), rhs = shapeOf(getRhs());
  if (lhs.empty() || lhs.size() > 2 || rhs.empty() || rhs.size() > 2 ||
      !sizesAgree(lhs.back(), rhs.front()))
    return emitOpError() << "cannot multiply " << getLhs().getType() << " and "
                         << getRhs().getType();
  Shape shape(lhs.drop_back());
  llvm::append_range(shape, rhs.drop_front());
  if (failed(checkPrecision(*this, getPrecisionConfig())))
    return failure();
  return checkResult(*this, getResult(), shape);
}

LogicalResult DotGeneralOp::verify() {
  DotDimensionNumbersAttr dims = getDotDimensionNumbers();
  ArrayRef<int64_t> lhs = shapeOf(getLhs()), rhs = shapeOf(getRhs());
  Shape left(dims.getLhsBatchingDimensions()),
      right(dims.getRhsBatchingDimensions());
  if (failed(checkCount(*this, "batching_dims", right.size(), left.size())) ||
      failed(checkCount(*this, "contracting_dims",
                        dims.getRhsContractingDimensions().size(),
                        dims.getLhsContractingDimensions().size())))
    return failure();
  size_t batches = left.size();
  llvm::append_range(left, dims.getLhsContractingDimensions());
  llvm::append_range(right, dims.getRhsContractingDimensions());
  if (failed(checkDims(*this, "the left operand's list", left, lhs.size())) ||
      failed(checkDims(*this, "the right operand's list", right, rhs.size())))
    return failure();
  for (auto [leftDim, rightDim] : llvm::zip(left, right))
    if (!sizesAgree(lhs[leftDim], rhs[rightDim]))
      return emitOpError() << "pairs dimension " << leftDim << " of "
                           << getLhs().getType() << " with dimension "
                           << rightDim << " of " << getRhs().getType();
  Shape shape;
  for (size_t batch = 0; batch < batches; ++batch)
    shape.push_back(lhs[left[batch]]);
  for (auto [dim, size] : llvm::enumerate(lhs))
    if (!llvm::is_contained(left, int64_t(dim)))
      shape.push_back(size);
  for (auto [dim, size] : llvm::enumerate(rhs))
    if (!llvm::is_contained(right, int64_t(dim)))
      shape.push_back(size);
  if (failed(checkPrecision(*this, getPrecisionConfig())))
    return failure();
  return checkResult(*this, getResult(), shape);
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

/// The dimension numbers name each dimension once.
static LogicalResult checkConvDims(ConvolutionOp op, size_t rank) {
  ConvDimensionNumbersAttr dims = op.getDimensionNumbers();
  auto check = [&](StringRef name, int64_t first, int64_t second,
                   ArrayRef<int64_t> spatial) {
    Shape all(spatial);
    all.push_back(first);
    all.push_back(second);
    return success(succeeded(checkCount(op, name, all.size(), rank)) &&
                   succeeded(checkDims(op, name, all, rank)));
  };
  return success(
      succeeded(check("the input's dim_numbers", dims.getInputBatchDimension(),
                      dims.getInputFeatureDimension(),
                      dims.getInputSpatialDimensions())) &&
      succeeded(check("the kernel's dim_numbers",
                      dims.getKernelInputFeatureDimension(),
                      dims.getKernelOutputFeatureDimension(),
                      dims.getKernelSpatialDimensions())) &&
      succeeded(check("the result's dim_numbers",
                      dims.getOutputBatchDimension(),
                      dims.getOutputFeatureDimension(),
                      dims.getOutputSpatialDimensions())));
}

/// Batches and features are divisible into groups.
static LogicalResult checkGroups(ConvolutionOp op) {
  ConvDimensionNumbersAttr dims = op.getDimensionNumbers();
  int64_t features = op.getFeatureGroupCount();
  int64_t batches = op.getBatchGroupCount();
  if (features < 1 || batches < 1 || (features > 1 && batches > 1))
    return op.emitOpError() << "must have groups of batches or of features, "
                               "and one group of the other";
  ArrayRef<int64_t> input = shapeOf(op.getLhs()), kernel = shapeOf(op.getRhs());
  int64_t inBatch = input[dims.getInputBatchDimension()];
  int64_t inFeature = input[dims.getInputFeatureDimension()];
  int64_t kernelIn = kernel[dims.getKernelInputFeatureDimension()];
  int64_t kernelOut = kernel[dims.getKernelOutputFeatureDimension()];
  auto divides = [](int64_t count, int64_t size) {
    return isDynamic(size) || size % count == 0;
  };
  if (!divides(batches, inBatch) || !divides(features, inFeature) ||
      !divides(batches, kernelOut) || !divides(features, kernelOut))
    return op.emitOpError() << "has sizes that are not divisible by its groups";
  if (!isDynamic(inFeature) && !sizesAgree(inFeature / features, kernelIn))
    return op.emitOpError()
           << "has a kernel for " << kernelIn
           << " features of each group, and there are " << inFeature / features;
  return success();
}

LogicalResult ConvolutionOp::verify() {
  ArrayRef<int64_t> input = shapeOf(getLhs()), kernel = shapeOf(getRhs());
  if (input.size() != kernel.size() || input.size() < 2)
    return emitOpError() << "cannot convolve " << getLhs().getType() << " with "
                         << getRhs().getType();
  if (failed(checkConvDims(*this, input.size())) || failed(checkGroups(*this)))
    return failure();
  ConvDimensionNumbersAttr dims = getDimensionNumbers();
  Shape sizes = llvm::map_to_vector(dims.getKernelSpatialDimensions(),
                                    [&](int64_t dim) { return kernel[dim]; });
  FailureOr<SmallVector<WindowDim>> windows =
      windowOf(*this, sizes, getWindowStrides(), getPadding(), getLhsDilation(),
               getRhsDilation());
  if (failed(windows) || failed(checkPrecision(*this, getPrecisionConfig())))
    return failure();
  if (getWindowReversal() &&
      failed(checkCount(*this, "reverse", getWindowReversal()->size(),
                        sizes.size())))
    return failure();
  Shape shape(input.size());
  int64_t batch = input[dims.getInputBatchDimension()];
  shape[dims.getOutputBatchDimension()] =
      isDynamic(batch) ? batch : batch / int64_t(getBatchGroupCount());
  shape[dims.getOutputFeatureDimension()] =
      kernel[dims.getKernelOutputFeatureDimension()];
  for (auto [to, from, window] :
       llvm::zip(dims.getOutputSpatialDimensions(),
                 dims.getInputSpatialDimensions(), *windows))
    shape[to] = windowsIn(input[from], window);
  return checkResult(*this, getResult(), shape);
}

//===----------------------------------------------------------------------===//
// Solvers
//===----------------------------------------------------------------------===//

/// The last two dimensions are equal.
static LogicalResult checkSquare(Operation *op, Value matrix) {
  ArrayRef<int64_t> shape = shapeOf(matrix);
  if (shape.size() >= 2 && sizesAgree(shape.back(), shape[shape.size() - 2]))
    return success();
  return op->emitOpError() << "must have square matrices, not "
                           << matrix.getType();
}

LogicalResult CholeskyOp::verify() {
  if (failed(checkSquare(*this, getA())))
    return failure();
  return checkResult(*this, getResult(), shapeOf(getA()), elementOf(getA()));
}

LogicalResult TriangularSolveOp::verify() {
  if (failed(checkSquare(*this, getA())))
    return failure();
  ArrayRef<int64_t> a = shapeOf(getA()), b = shapeOf(getB());
  if (b.size() != a.size() || elementOf(getA()) != elementOf(getB()) ||
      !shapesAgree(a.drop_back(2), b.drop_back(2)) ||
      !sizesAgree(a.back(), b[b.size() - (getLeftSide() ? 2 : 1)]))
    return emitOpError() << "cannot solve " << getA().getType() << " for "
                         << getB().getType();
  if (getTransposeA() == Transpose::TRANSPOSE_INVALID)
    return emitOpError() << "must say whether the matrix is transposed";
  return checkResult(*this, getResult(), b, elementOf(getB()));
}

//===----------------------------------------------------------------------===//
// Batches
//===----------------------------------------------------------------------===//

/// `batches` have the operand's type, `features` one element for each feature.
static LogicalResult checkBatch(Operation *op, int64_t feature,
                                ArrayRef<Value> batches,
                                ArrayRef<Value> features) {
  ArrayRef<int64_t> shape = shapeOf(batches[0]);
  if (feature < 0 || feature >= int64_t(shape.size()))
    return op->emitOpError()
           << "feature_index " << feature << " is not a dimension of "
           << batches[0].getType();
  for (Value each : batches)
    if (!shapesAgree(shapeOf(each), shape) ||
        elementOf(each) != elementOf(batches[0]))
      return op->emitOpError()
             << "has " << each.getType() << " beside " << batches[0].getType();
  for (Value each : features)
    if (!shapesAgree(shapeOf(each), {shape[feature]}) ||
        elementOf(each) != elementOf(batches[0]))
      return op->emitOpError()
             << "has " << each.getType() << " for the features of "
             << batches[0].getType();
  return success();
}

LogicalResult BatchNormInferenceOp::verify() {
  return checkBatch(*this, getFeatureIndex(), {getOperand(), getResult()},
                    {getScale(), getOffset(), getMean(), getVariance()});
}

LogicalResult BatchNormTrainingOp::verify() {
  return checkBatch(*this, getFeatureIndex(), {getOperand(), getOutput()},
                    {getScale(), getOffset(), getBatchMean(), getBatchVar()});
}

LogicalResult BatchNormGradOp::verify() {
  return checkBatch(
      *this, getFeatureIndex(),
      {getOperand(), getGradOutput(), getGradOperand()},
      {getScale(), getMean(), getVariance(), getGradScale(), getGradOffset()});
}

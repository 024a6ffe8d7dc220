// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attribute #mgpu.product, and that what has it has such matrices.
#include "dialect/mgpu/MgpuDialect.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mgpu::ir;

MatrixAttr MatrixAttr::turned() const {
  return get(getContext(), getArgument(), getColumns(), getRows(),
             getColumnStride(), getRowStride(), getBatch(), getBatchStride(),
             getOffset());
}

LogicalResult ProductAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  int64_t m, int64_t n, int64_t k, Type a,
                                  Type b, Type c, int64_t batch, bool turned,
                                  bool overwrites,
                                  ArrayRef<MatrixAttr> matrices) {
  constexpr int64_t most = 1 << 30;
  for (int64_t size : {m, n, k, batch})
    if (size < 1 || size > most)
      return emitError() << "a size of a product is " << size
                         << "; sizes are from 1 to 2^30";
  for (Type type : {a, b, c})
    if (!type.isIntOrIndexOrFloat())
      return emitError() << "a product has numbers as elements, not " << type;
  if (matrices.empty())
    return success();
  const std::pair<int64_t, int64_t> sizes[] = {{m, k}, {k, n}, {m, n}};
  if (matrices.size() < 2 || matrices.size() > 3)
    return emitError() << "a product has the matrices A and B, or A, B and C";
  if (overwrites && matrices.size() == 2)
    return emitError() << "a product overwrites a C that it has";
  for (auto [index, matrix] : llvm::enumerate(matrices)) {
    if (std::pair(matrix.getRows(), matrix.getColumns()) != sizes[index] ||
        matrix.getBatch() != batch)
      return emitError() << "matrix " << index << " is not "
                         << sizes[index].first << " x " << sizes[index].second
                         << ", " << batch << " times";
    for (size_t other = 0; other < index; ++other)
      if (matrices[other].getArgument() == matrix.getArgument())
        return emitError() << "matrices " << other << " and " << index
                           << " are one argument";
  }
  const MatrixAttr inB = matrices[1];
  if (turned != (inB.getColumnStride() != 1 && inB.getRowStride() == 1))
    return emitError() << "B is turned where its columns are contiguous and "
                          "its rows are not";
  return success();
}

MatrixAttr mgpu::ir::matrixOf(FunctionOpInterface kernel, int64_t position) {
  if (position < 0 || position >= kernel.getNumArguments())
    return {};
  auto type = dyn_cast<MemRefType>(kernel.getArgumentTypes()[position]);
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (!type || !type.hasStaticShape() ||
      (type.getRank() != 2 && type.getRank() != 3) ||
      failed(type.getStridesAndOffset(strides, offset)) ||
      llvm::is_contained(strides, ShapedType::kDynamic) ||
      ShapedType::isDynamic(offset))
    return {};
  const unsigned last = unsigned(type.getRank()) - 1;
  const bool isBatch = last == 2;
  return MatrixAttr::get(
      kernel.getContext(), uint32_t(position), type.getDimSize(last - 1),
      type.getDimSize(last), strides[last - 1], strides[last],
      isBatch ? type.getDimSize(0) : 1, isBatch ? strides[0] : 0, offset);
}

/// Whether the launch's argument may be a batch of matrices of these sizes.
static bool mayBe(Value argument, Type element, int64_t batch, int64_t rows,
                  int64_t columns) {
  auto type = dyn_cast<MemRefType>(argument.getType());
  if (!type || type.getElementType() != element ||
      (type.getRank() != 3 && (type.getRank() != 2 || batch != 1)))
    return false;
  const int64_t sizes[] = {batch, rows, columns};
  return llvm::all_of_zip(
      type.getShape(), ArrayRef(sizes).take_back(size_t(type.getRank())),
      [](int64_t size, int64_t wanted) {
        return ShapedType::isDynamic(size) || size == wanted;
      });
}

static bool mayBe(ProductAttr product, OperandRange arguments) {
  const int64_t m = product.getM(), n = product.getN(), k = product.getK(),
                batch = product.getBatch();
  return (arguments.size() == 2 || arguments.size() == 3) &&
         mayBe(arguments[0], product.getA(), batch, m, k) &&
         (product.getTurned()
              ? mayBe(arguments[1], product.getB(), batch, n, k)
              : mayBe(arguments[1], product.getB(), batch, k, n)) &&
         (arguments.size() == 2 ||
          mayBe(arguments[2], product.getC(), batch, m, n));
}

/// Whether the kernel's arguments are these matrices.
static bool hasMatrices(FunctionOpInterface kernel, ProductAttr product) {
  const Type types[] = {product.getA(), product.getB(), product.getC()};
  for (auto [type, matrix] : llvm::zip(types, product.getMatrices())) {
    const MatrixAttr given = matrixOf(kernel, matrix.getArgument());
    if (!given || (given != matrix && given != matrix.turned()) ||
        getElementTypeOrSelf(kernel.getArgumentTypes()[matrix.getArgument()]) !=
            type)
      return false;
  }
  return !product.getMatrices().empty();
}

LogicalResult mgpu::ir::verifyProduct(Operation *op, Attribute attribute) {
  auto product = dyn_cast<ProductAttr>(attribute);
  if (!product)
    return op->emitOpError("has 'mgpu.product', which is no #mgpu.product");
  auto launch = dyn_cast<LaunchOp>(op);
  auto kernel = dyn_cast<FunctionOpInterface>(op);
  if (!launch && !kernel)
    return op->emitOpError("cannot be a product: launches and kernels are");
  if (launch ? mayBe(product, launch.getArgs()) : hasMatrices(kernel, product))
    return success();
  return op->emitOpError("is a product, and its arguments are other matrices "
                         "than A, B and C");
}

LogicalResult
SparseProductAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                          uint32_t kind, int64_t rows, int64_t columns,
                          int64_t entries, int64_t breadth, bool, bool,
                          ArrayRef<int64_t> operands) {
  constexpr uint32_t lastKind = 2; // kernels::SparseProduct::Sampled
  if (kind > lastKind)
    return emitError() << "there is no sparse product of kind " << kind;
  for (int64_t size : {rows, columns, entries, breadth})
    if (size < 1)
      return emitError() << "a size of a sparse product is " << size;
  if (!operands.empty() && operands.size() != 5)
    return emitError() << "a sparse product has 5 operands, not "
                       << operands.size();
  return success();
}

// The attribute #mgpu.attention, and that what has it has such buffers.

int64_t AttentionAttr::getBatchSize() const {
  int64_t all = 1;
  for (int64_t size : getBatch())
    all *= size;
  return all;
}

/// Whether the index is a sum of dimensions, each times a constant.
static bool isLinear(AffineExpr index) {
  auto both = dyn_cast<AffineBinaryOpExpr>(index);
  return !both || ((index.getKind() == AffineExprKind::Add ||
                    index.getKind() == AffineExprKind::Mul) &&
                   isLinear(both.getLHS()) && isLinear(both.getRHS()));
}

LogicalResult
AttentionAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      ArrayRef<int64_t> batch, int64_t queries, int64_t keys,
                      int64_t head, int64_t value, ArrayAttr maps,
                      ArrayRef<int64_t> operands) {
  constexpr int64_t most = 1 << 30;
  SmallVector<int64_t> sizes(batch);
  sizes.append({queries, keys, head, value});
  int64_t all = 1;
  for (int64_t size : sizes)
    if (size < 1 || size > most)
      return emitError() << "a size of an attention is " << size
                         << "; sizes are from 1 to 2^30";
  constexpr int64_t mostBatches = 65535; // CUDA's blocks along y
  for (int64_t size : batch)
    if ((all *= size) > mostBatches)
      return emitError() << "an attention has a batch of at most "
                         << mostBatches;
  constexpr size_t buffers = 4;
  if (maps.size() != buffers || !llvm::all_of(maps, [&](Attribute each) {
        auto map = dyn_cast<AffineMapAttr>(each);
        return map && map.getValue().getNumDims() == sizes.size() &&
               map.getValue().getNumSymbols() == 0 &&
               llvm::all_of(map.getValue().getResults(),
                            [](AffineExpr index) { return isLinear(index); });
      }))
    return emitError() << "an attention has maps of Q, K, V and the result, "
                          "each of the batch's dimensions and four more";
  if (!operands.empty() && operands.size() != buffers)
    return emitError() << "an attention has 4 operands, not "
                       << operands.size();
  return success();
}

LogicalResult mgpu::ir::verifyAttention(Operation *op, Attribute attribute) {
  auto attention = dyn_cast<AttentionAttr>(attribute);
  if (!attention)
    return op->emitOpError("has 'mgpu.attention', which is no "
                           "#mgpu.attention");
  auto launch = dyn_cast<LaunchOp>(op);
  auto kernel = dyn_cast<FunctionOpInterface>(op);
  if (!launch && !kernel)
    return op->emitOpError("cannot be an attention: launches and kernels are");
  SmallVector<Type> types;
  if (launch)
    llvm::append_range(types, launch.getArgs().getTypes());
  for (int64_t position : attention.getOperands())
    if (kernel && position >= 0 && position < kernel.getNumArguments())
      types.push_back(kernel.getArgumentTypes()[size_t(position)]);
  const bool fits =
      types.size() == attention.getMaps().size() &&
      llvm::all_of(llvm::enumerate(types), [&](auto each) {
        auto type = dyn_cast<MemRefType>(each.value());
        return type &&
               type.getRank() == attention.getMap(each.index()).getNumResults();
      });
  return fits ? success()
              : op->emitOpError("is an attention, and its arguments are other "
                                "buffers than Q, K, V and the result");
}

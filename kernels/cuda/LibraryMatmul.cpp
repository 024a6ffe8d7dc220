// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/mgpu/MgpuDialect.h"
#include "kernels/cuda/ProductForms.h"
#include "kernels/cuda/ProductText.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace mgpu::kernels {

std::optional<ElementType> libraryType(Type type) {
  if (type.isF16())
    return ElementType::F16;
  if (type.isBF16())
    return ElementType::BF16;
  if (type.isF32())
    return ElementType::F32;
  if (type.isF64())
    return ElementType::F64;
  return std::nullopt;
}

std::string libraryMatmulRefusal(ModuleOp kernel) {
  const ir::ProductAttr product = productOf(kernel);
  if (!product)
    return "-";
  Type factors = product.getA(), sums = product.getC();
  if (!libraryType(factors) || product.getB() != factors)
    return "-";
  if (!product.hasC())
    return "computes more than the product, whose sums it rounds as it is "
           "written; --no-fusion keeps them apart";
  bool isNarrow = factors.isF16() || factors.isBF16();
  if (sums != factors && !(isNarrow && sums.isF32()))
    return "sums are of another type than f32 and the factors'";
  for (auto [name, matrix] : {std::pair("A", product.matrixA()),
                              {"B", product.storedB()},
                              {"C", product.matrixC()}}) {
    if (matrix.getColumnStride() != 1)
      return std::string("a row of ") + name + " is not contiguous";
    if (std::string refusal = cuda::overlapRefusal(matrix, name);
        !refusal.empty())
      return refusal;
  }
  return "";
}

MatrixProduct libraryMatmul(ModuleOp kernel) {
  const ir::ProductAttr shape = productOf(kernel);
  MatrixProduct product;
  product.factors = *libraryType(shape.getA());
  product.sums = *libraryType(shape.getC());
  product.m = uint64_t(shape.getM());
  product.n = uint64_t(shape.getN());
  product.k = uint64_t(shape.getK());
  product.batch = uint64_t(shape.getBatch());
  product.overwrites = shape.getOverwrites();
  product.isTurned = shape.getTurned();
  for (auto [into, from] : {std::pair(0, shape.matrixA()),
                            {1, shape.storedB()},
                            {2, shape.matrixC()}})
    product.matrices[size_t(into)] = {
        from.getArgument(), uint64_t(from.getOffset()),
        uint64_t(from.getRowStride()),
        from.getBatch() > 1 ? uint64_t(from.getBatchStride()) : 0};
  return product;
}

static std::optional<ElementType> indexType(Type type) {
  if (type.isIndex())
    return ElementType::Index;
  if (type.isInteger(32))
    return ElementType::I32;
  if (type.isInteger(64))
    return ElementType::I64;
  return std::nullopt;
}

std::optional<SparseProduct> librarySparse(ModuleOp kernel) {
  auto entry = kernel.lookupSymbol<func::FuncOp>("entry");
  if (!entry)
    return std::nullopt;
  auto of = ir::sparseProductOf(entry);
  if (!of || of.getOperands().empty())
    return std::nullopt;
  const ArrayRef<int64_t> operands = of.getOperands();
  SparseProduct product;
  product.kind = of.getKind();
  product.isFirstTurned = of.getIsFirstTurned();
  product.isSecondTurned = of.getIsSecondTurned();
  product.rows = uint64_t(of.getRows());
  product.columns = uint64_t(of.getColumns());
  product.entries = uint64_t(of.getEntries());
  product.breadth = uint64_t(of.getBreadth());
  SparseProduct::Operand *into[] = {&product.positions, &product.index,
                                    &product.values, &product.first,
                                    &product.second};
  Type elements[5];
  for (size_t k = 0; k < 5; ++k) {
    if (uint64_t(operands[k]) >= entry.getNumArguments())
      return std::nullopt;
    auto type =
        dyn_cast<MemRefType>(entry.getArgumentTypes()[size_t(operands[k])]);
    SmallVector<int64_t> strides;
    int64_t offset = 0;
    if (!type || failed(type.getStridesAndOffset(strides, offset)) ||
        ShapedType::isDynamic(offset))
      return std::nullopt;
    *into[k] = {uint32_t(operands[k]), uint64_t(offset)};
    elements[k] = type.getElementType();
  }
  const auto indices = indexType(elements[0]);
  const auto factors = libraryType(elements[2]),
             sums = libraryType(elements[4]);
  if (!indices || elements[1] != elements[0] || !factors || !sums ||
      elements[3] != elements[2])
    return std::nullopt;
  const bool isWidened = product.kind != SparseProduct::Sampled &&
                         sizeBytes(*factors) == 2 && *sums == ElementType::F32;
  if (*sums != *factors && !isWidened)
    return std::nullopt;
  product.indices = *indices;
  product.factors = *factors;
  product.sums = *sums;
  return product;
}

} // namespace mgpu::kernels

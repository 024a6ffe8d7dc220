// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/ProductForms.h"

#include "kernels/cuda/ProductBody.h"

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

} // namespace mgpu::kernels

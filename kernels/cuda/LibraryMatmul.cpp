// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/ProductForms.h"

#include "kernels/cuda/MatmulShape.h"

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
  auto product = cuda::matmulShapeOf(kernel);
  if (!product)
    return "-";
  Type factors = product->a.element, sums = product->c.element;
  if (!libraryType(factors) || product->b.element != factors)
    return "-";
  if (product->loop && !product->overwrites)
    return "computes more than the product, whose sums it rounds as it is "
           "written; --no-fusion keeps them apart";
  bool isNarrow = factors.isF16() || factors.isBF16();
  if (sums != factors && !(isNarrow && sums.isF32()))
    return "sums are of another type than f32 and the factors'";
  for (auto [name, matrix] : {std::pair("A", product->a),
                              {"B", product->storedB()},
                              {"C", product->c}}) {
    if (matrix.columnStride != 1)
      return std::string("a row of ") + name + " is not contiguous";
    if (std::string refusal = matrix.overlapRefusal(name); !refusal.empty())
      return refusal;
  }
  return "";
}

MatrixProduct libraryMatmul(ModuleOp kernel) {
  cuda::MatmulShape shape = *cuda::matmulShapeOf(kernel);
  MatrixProduct product;
  product.factors = *libraryType(shape.a.element);
  product.sums = *libraryType(shape.c.element);
  product.m = uint64_t(shape.m());
  product.n = uint64_t(shape.n());
  product.k = uint64_t(shape.k());
  product.batch = uint64_t(shape.c.batch);
  product.overwrites = shape.overwrites;
  product.isTurned = shape.isTurned();
  for (auto [into, from] :
       {std::pair(0, shape.a), {1, shape.storedB()}, {2, shape.c}})
    product.matrices[size_t(into)] = {
        from.position, uint64_t(from.offset), uint64_t(from.rowStride),
        from.batch > 1 ? uint64_t(from.batchStride) : 0};
  return product;
}

} // namespace mgpu::kernels

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The products that Matmul's text is for, and its configurations.
#include "facts/KernelProduct.h"
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/ProductForms.h"
#include "kernels/cuda/ProductText.h"
#include "planner/dag/KernelWork.h"

using namespace mlir;

namespace mgpu::kernels {

using P = KernelParameter;

/// The product, if it is of a type that the text is for.
static ir::ProductAttr tiledProduct(ModuleOp kernel) {
  const ir::ProductAttr product = productOf(kernel);
  if (!product)
    return {};
  Type element = product.getC();
  if ((!element.isF32() && !element.isF64()) || product.getA() != element ||
      product.getB() != element)
    return {};
  return product;
}

bool isMatmul(ModuleOp kernel) { return bool(tiledProduct(kernel)); }

KernelSpace matmulSpace(ModuleOp kernel, Dim3 block, Dim3 maxGrid) {
  const ir::ProductAttr product = tiledProduct(kernel);
  const planner::TileForm form = planner::tilesByDefault(facts::sizesOf(
      product, *libraryType(product.getA()), *libraryType(product.getC()),
      product.hasC() && !product.getOverwrites()));
  KernelConfig defaults;
  defaults[P::BlockX] = form.blockX;
  defaults[P::BlockY] = form.blockY;
  defaults[P::TileX] = form.tileX;
  defaults[P::TileY] = form.tileY;
  KernelSpace space = cuda::tileSpace(
      defaults, block, maxGrid,
      "is a matrix product, in tiles of shared memory",
      {{"MGPU_DEPTH", {form.depth, 8, 32}}, {"MGPU_STAGES", {form.stages, 1}}});
  space.offer(P::BlockX, {8, 16, 32});
  space.offer(P::BlockY, {4, 8, 16});
  space.offer(P::TileX, {1, 2, 4, 8});
  space.offer(P::TileY, {1, 2, 4, 8});
  space.offer(P::MinBlocks, {1, 2, 3, 4});
  // 16 bytes more put a column of A's tile, or of a turned B's, in more banks.
  const uint32_t width = cuda::widthOf(product.getA()) / 8,
                 more = (product.getTurned() ? 32 : 16) / width;
  space.sharedBytes = Formula(width) *
                      (space.covers[0] + space.covers[1] + more) *
                      Formula::tunable(0) * Formula::tunable(1);
  space.requireLaunch();
  space.requireStaticShared();
  return space;
}

} // namespace mgpu::kernels

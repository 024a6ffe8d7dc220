// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The products that TensorMatmul's text is for, and its configurations.
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/ProductForms.h"
#include "kernels/cuda/ProductText.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace mgpu::kernels {

using P = KernelParameter;

std::string tensorMatmulRefusal(ModuleOp kernel) {
  const ir::ProductAttr product = productOf(kernel);
  if (!product)
    return "-";
  Type element = product.getA(), sum = product.getC();
  if ((!element.isF16() && !element.isBF16()) || product.getB() != element)
    return "-";
  if (!sum.isF32() && sum != element)
    return "sums are of f32 or of the factors' type";
  if (product.matrixA().getColumnStride() != 1 ||
      (product.matrixB().getColumnStride() != 1 && !product.getTurned()))
    return "a row of A or B is not contiguous";
  return "";
}

KernelSpace tensorMatmulSpace(ModuleOp kernel, Dim3 block, Dim3 maxGrid) {
  constexpr uint32_t lanes = 32, instructionRows = 16;
  const ir::ProductAttr product = productOf(kernel);
  // 128 x 128 by 8 warps, less where the product is smaller.
  auto fit = [](int64_t extent, uint32_t unit, uint32_t least, uint32_t most) {
    return uint32_t(std::clamp<int64_t>(
        int64_t(llvm::PowerOf2Ceil(llvm::divideCeil(extent, unit))), least,
        most));
  };
  KernelConfig defaults;
  defaults[P::BlockX] = lanes;
  defaults[P::BlockY] = product.getN() > 32 ? 8 : 4;
  defaults[P::TileX] =
      fit(product.getN(), lanes, defaults[P::BlockY] == 8 ? 2 : 1, 4);
  defaults[P::TileY] = fit(product.getM(), defaults[P::BlockY],
                           2 * instructionRows / defaults[P::BlockY], 16);
  KernelSpace space = cuda::tileSpace(
      defaults, block, maxGrid,
      "is a matrix product, on tensor cores, in tiles of shared memory",
      {{"MGPU_DEPTH", {32, 16, 64}},
       {"MGPU_STAGES", {3, 2, 4}},
       {"MGPU_WARPS_Y", {2, 1, 4}}});
  space.offer(P::BlockY, {4, 8, 16});
  space.offer(P::TileX, {1, 2, 4, 8});
  space.offer(P::TileY, {2, 4, 8, 16, 32});
  space.offer(P::MinBlocks, {1, 2, 3, 4});
  const Formula depth = Formula::tunable(0), stages = Formula::tunable(1),
                warpsY = Formula::tunable(2), tile = instructionRows;
  space.sharedBytes = Formula(cuda::widthOf(product.getA()) / 8) *
                      (space.covers[0] + space.covers[1]) * depth * stages;
  space.requireLaunch();
  // Warps lie in warpsY rows of blockY / warpsY.
  const char *whole = "whole tiles of a warp";
  space.require(whole, P::BlockY, Relation::MultipleOf, warpsY,
                "$left warps do not lie in $right rows");
  space.require(whole, space.covers[0] * warpsY, Relation::MultipleOf,
                P::BlockY * tile,
                "the warps of a row do not divide the columns of a block in "
                "tiles of 16 x 16");
  space.require(whole, space.covers[1], Relation::MultipleOf, warpsY * tile,
                "the rows of warps do not divide $left rows of a block in "
                "tiles of 16 x 16");
  space.requireStaticShared();
  // A thread has its sums, the fragments of A's rows and B's columns that its
  // warp multiplies, and 88 other registers, as ptxas has been seen to need
  // (TensorMatmulCorners). Both sides are times 4 * warpsY * blockY, by which
  // fragments, blockY * tileY / warpsY / 4 + 8 * tileX * warpsY / blockY, are
  // whole.
  constexpr int64_t others = 88, ofThread = 255, ofWarpLane = 65536 / lanes;
  const Formula times = Formula(4) * warpsY * P::BlockY,
                registers = times * (Formula(P::TileX) * P::TileY + others) +
                            Formula(P::BlockY) * P::BlockY * P::TileY +
                            Formula(lanes) * P::TileX * warpsY * warpsY;
  space.require("registers of a thread", registers, Relation::AtMost,
                times * ofThread,
                "the sums and fragments of a thread leave fewer than 88 of its "
                "255 registers");
  space.require("registers of a multiprocessor",
                registers * P::BlockY * P::MinBlocks, Relation::AtMost,
                times * ofWarpLane,
                "the sums, the fragments and 88 other registers of each thread "
                "are more than the 65536 of a multiprocessor");
  return space;
}

} // namespace mgpu::kernels

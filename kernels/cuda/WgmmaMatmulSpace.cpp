// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The products that WgmmaMatmul's text is for, and its configurations.
#include "kernels/cuda/ProductBody.h"
#include "kernels/cuda/ProductForms.h"
#include "kernels/cuda/ProductText.h"

using namespace mlir;

namespace mgpu::kernels {

using P = KernelParameter;

namespace {

/// Elements along both sides of a panel, what one tensor copy brings.
constexpr uint32_t panel = 64, bytesOfElement = 2;

/// Bytes of dynamic shared memory before the stages: the barriers, and to the
/// first multiple of it, where a swizzle's pattern begins.
constexpr uint32_t patternBytes = 1024;

/// Says what keeps matrix `name` from being a tensor map, or "".
std::string mapRefusal(const std::string &name, ir::MatrixAttr matrix) {
  for (auto [elements, head, tail] :
       {std::tuple(matrix.getRowStride(), "rows of " + name + " are ",
                   " apart"),
        {matrix.getOffset(), name + " begins ", " into its buffer"},
        {matrix.getBatch() > 1 ? matrix.getBatchStride() : 0,
         "matrices of " + name + " are ", " apart"}})
    if (elements * bytesOfElement % tensorMapAlignment != 0)
      return head + std::to_string(elements * bytesOfElement) + " bytes" +
             tail + ", no multiple of the " +
             std::to_string(tensorMapAlignment) + " that tensor copies take";
  return cuda::overlapRefusal(matrix, name);
}

} // namespace

std::string wgmmaMatmulRefusal(ModuleOp kernel) {
  std::string refusal = tensorMatmulRefusal(kernel);
  if (!refusal.empty())
    return refusal;
  const ir::ProductAttr product = productOf(kernel);
  auto entry = kernel.lookupSymbol<func::FuncOp>("entry");
  if (scf::ForOp loop = facts::productLoop(entry.getBody())) {
    OwningOpRef<ModuleOp> around = splitProduct(loop);
    for (auto part : around->getOps<func::FuncOp>())
      for (unsigned factor :
           {product.matrixA().getArgument(), product.matrixB().getArgument()})
        if (!part.getArgument(factor).use_empty())
          return "A or B is read outside of the product, too, and tensor maps "
                 "cannot be";
  }
  refusal = mapRefusal("A", product.matrixA());
  return refusal.empty() ? mapRefusal("B", product.storedB()) : refusal;
}

KernelSpace wgmmaMatmulSpace(ModuleOp kernel, Dim3 block, Dim3 maxGrid) {
  const ir::ProductAttr product = productOf(kernel);
  KernelConfig defaults;
  // 128 x 128 by two warpgroups, less where the product is smaller. 128 x 256
  // may spill a few registers around the loop.
  defaults[P::BlockX] = 32;
  defaults[P::BlockY] = product.getM() > panel ? 9 : 5;
  defaults[P::TileX] = product.getN() > panel ? 4 : 2;
  defaults[P::TileY] = 16;
  KernelSpace space = cuda::tileSpace(
      defaults, block, maxGrid,
      "is a matrix product, on tensor cores by warpgroups, from tiles that "
      "tensor copies bring",
      {{"MGPU_DEPTH", {64, 128}},
       {"MGPU_STAGES", {4, 2, 3, 6}},
       {"MGPU_TILES", {1, 2, 4}},
       {"MGPU_RASTER", {8, 1}}});
  space.offer(P::BlockY, {5, 9, 13});
  space.offer(P::TileX, {2, 4, 8});
  space.offer(P::TileY, {16, 32});
  space.offer(P::MinBlocks, {1, 2});
  // One warp loads for the others and computes nothing.
  const Formula tileRows = (Formula(P::BlockY) + -1) * P::TileY;
  space.covers[1] = tileRows * Formula::tunable(2);
  space.sharedBytes = Formula(bytesOfElement) * (space.covers[0] + tileRows) *
                          Formula::tunable(0) * Formula::tunable(1) +
                      patternBytes;
  space.sharedIsDynamic = true;
  space.requireLaunch();
  // Sums stay in registers, beside which a thread needs 40. So many has a
  // multiprocessor of every GPU with these instructions
  // (device/api/DeviceProfile.cpp).
  constexpr uint32_t besideSums = 40, registers = 65536, ofThread = 255;
  const Formula each = Formula(P::TileX) * P::TileY + besideSums;
  space.require("registers of a thread", each, Relation::AtMost, ofThread,
                "the sums and 40 other registers of a thread are $left; it has "
                "no more than $right");
  // A quarter of them is for every fourth warp.
  space.require(
      "registers of a multiprocessor",
      each * P::BlockX *
          (Formula(P::BlockY) * P::BlockZ * P::MinBlocks).roundedUp(4),
      Relation::AtMost, registers,
      "the sums and 40 other registers of each thread, of warps by "
      "fours, are $left; at most $right");
  return space;
}

} // namespace mgpu::kernels

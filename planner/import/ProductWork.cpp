// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/ProductWork.h"

#include "planner/dag/TileWork.h"

#include "mlir/IR/TypeUtilities.h"

namespace mgpu::planner {

using namespace mlir;

std::optional<LaunchWork>
productWorkOf(ir::LaunchOp launch, Dim3 grid, Dim3 block,
              llvm::function_ref<HostValue(Value)> valueOf) {
  OperandRange operands = launch.getArgs();
  if (operands.size() < 2)
    return std::nullopt;
  const Type element = getElementTypeOrSelf(operands[0]);
  if ((!element.isF32() && !element.isF64()) ||
      llvm::any_of(operands, [&](Value each) {
        return getElementTypeOrSelf(each) != element;
      }))
    return std::nullopt;
  const HostValue first = valueOf(operands[0]), second = valueOf(operands[1]);
  const auto *a = std::get_if<View>(&first), *b = std::get_if<View>(&second);
  if (!a || !b || a->sizes.size() < 2 || b->sizes.size() != a->sizes.size())
    return std::nullopt;
  const size_t row = a->sizes.size() - 2, column = row + 1;
  const bool isByColumns = launch->hasAttr("mgpu.b_turned");
  ProductSizes sizes;
  sizes.m = double(a->sizes[row]);
  sizes.k = double(a->sizes[column]);
  sizes.n = double(b->sizes[isByColumns ? row : column]);
  sizes.batch = row > 0 ? double(a->sizes[0]) : 1;
  sizes.factorBytes = sizes.sumBytes = element.isF64() ? 8 : 4;
  sizes.overwrites = operands.size() == 2;
  sizes.isTurned =
      isByColumns || (b->strides[column] != 1 && b->strides[row] == 1);
  return workOfTiles(sizes, tilesByDefault(sizes),
                     double(grid.volume()) * double(block.volume()));
}

} // namespace mgpu::planner

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/KernelView.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

namespace mgpu::planner {

using namespace mlir;

const KernelView *KernelViews::of(Value memref) {
  auto at = known.find(memref);
  if (at == known.end())
    at = known.try_emplace(memref, compute(memref)).first;
  return at->second ? &*at->second : nullptr;
}

std::optional<KernelView> KernelViews::compute(Value memref) {
  if (!body.isAncestor(memref.getParentRegion())) {
    const HostValue &outer = valueOf(memref);
    auto *host = std::get_if<View>(&outer);
    if (!host)
      return std::nullopt;
    return KernelView{memref, host->buffer, AffineForm{host->offset, {}},
                      host->sizes, host->strides};
  }
  Operation *op = memref.getDefiningOp();
  if (auto cast = dyn_cast_or_null<memref::CastOp>(op)) {
    const KernelView *source = of(cast.getSource());
    return source ? std::optional(*source) : std::nullopt;
  }
  auto subview = dyn_cast_or_null<memref::SubViewOp>(op);
  if (!subview)
    return std::nullopt;
  const KernelView *found = of(subview.getSource());
  if (!found)
    return std::nullopt;
  KernelView source = *found, view;
  view.root = source.root;
  view.buffer = source.buffer;
  view.offset = source.offset;
  auto formOf = [&](OpFoldResult value) -> std::optional<AffineForm> {
    if (auto constant = getConstantIntValue(value))
      return AffineForm{*constant, {}};
    return affine.evaluate(cast<Value>(value));
  };
  llvm::SmallBitVector dropped = subview.getDroppedDims();
  for (size_t k = 0; k < source.sizes.size(); ++k) {
    auto offset = formOf(subview.getMixedOffsets()[k]);
    auto size = formOf(subview.getMixedSizes()[k]);
    auto stride = formOf(subview.getMixedStrides()[k]);
    if (!offset || !size || !stride || !size->isConstant() ||
        !stride->isConstant())
      return std::nullopt;
    int64_t step;
    if (!affine.addScaled(view.offset, *offset, source.strides[k]) ||
        llvm::MulOverflow(source.strides[k], stride->constant, step))
      return std::nullopt;
    if (dropped.test(k))
      continue;
    view.sizes.push_back(size->constant);
    view.strides.push_back(step);
  }
  return view;
}

} // namespace mgpu::planner

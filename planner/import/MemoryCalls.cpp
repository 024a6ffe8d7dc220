// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/MemoryCalls.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>

namespace mgpu::planner {

using namespace mlir;

Result<void> MemoryCalls::visit(Operation *op) {
  return llvm::TypeSwitch<Operation *, Result<void>>(op)
      .Case<memref::AllocOp, memref::AllocaOp>(
          [&](Operation *alloc) { return visitAlloc(alloc); })
      .Case([&](memref::DeallocOp) { return visitDealloc(op); })
      .Case([&](memref::CastOp) { return visitCast(op); })
      .Case([&](memref::SubViewOp) { return visitSubview(op); })
      .Case([&](memref::ReinterpretCastOp) { return visitReinterpretCast(op); })
      .Case<memref::CollapseShapeOp, memref::ExpandShapeOp>(
          [&](Operation *reshape) { return visitReshape(reshape); })
      .Case([&](memref::TransposeOp) { return visitTranspose(op); })
      .Case([&](memref::GetGlobalOp) { return visitGetGlobal(op); })
      .Case([&](memref::DimOp) { return visitDim(op); })
      .Case([&](memref::CopyOp) { return visitCopy(op); })
      .Default([&](Operation *) {
        return notSupported(
            op, "cannot be captured: host code may not touch memory itself; "
                "do it in a kernel or in the inputs");
      });
}

Result<void> MemoryCalls::visitAlloc(Operation *op) {
  auto type = cast<MemRefType>(op->getResult(0).getType());
  if (!type.getLayout().isIdentity() || !elementTypeOf(type.getElementType()))
    return notSupported(op, "host memory of type " + Twine(textOf(type)) +
                                " cannot be captured: elements must be plain "
                                "numbers, without gaps");
  constexpr __int128 mostElements = __int128(1) << 40;
  std::vector<int64_t> shape = type.getShape().vec();
  auto size = op->operand_begin();
  __int128 elements = 1;
  for (int64_t &each : shape) {
    if (ShapedType::isDynamic(each)) {
      MGPU_TRY_ASSIGN(each, host.integerOf(op, *size++, "the size"));
    }
    elements *= each;
    if (each < 0 || elements > mostElements)
      return reported(op->emitOpError("the size ")
                      << each << " is not one of memory: give sizes from 0 to "
                      << "2^40 elements in all");
  }
  host.allocate(op->getResult(0), nameOf(op->getLoc(), "host"),
                DeviceId::host(), BufferRole::HostLocal, {}, std::move(shape));
  return {};
}

Result<void> MemoryCalls::visitDealloc(Operation *op) {
  MGPU_TRY_ASSIGN(auto view,
                  host.memrefOf(op, cast<memref::DeallocOp>(op).getMemref()));
  return host.recorder.free(view.buffer, std::nullopt,
                            host.placeOf(op->getLoc()));
}

Result<void> MemoryCalls::visitCast(Operation *op) {
  MGPU_TRY_ASSIGN(auto source,
                  host.memrefOf(op, cast<memref::CastOp>(op).getSource()));
  if (auto type = dyn_cast<MemRefType>(op->getResult(0).getType()))
    for (size_t k = 0; k < source.sizes.size(); ++k)
      if (!type.isDynamicDim(k) && type.getDimSize(k) != source.sizes[k])
        return reported(op->emitOpError("dimension ")
                        << k << " is cast to " << type.getDimSize(k)
                        << ", but it is " << source.sizes[k] << " long");
  host.set(op->getResult(0), source);
  return {};
}

Result<void> MemoryCalls::visitDim(Operation *op) {
  auto dim = cast<memref::DimOp>(op);
  MGPU_TRY_ASSIGN(auto view, host.memrefOf(op, dim.getSource()));
  MGPU_TRY_ASSIGN(auto index,
                  host.integerOf(op, dim.getIndex(), "the dimension"));
  if (index < 0 || size_t(index) >= view.sizes.size())
    return reported(op->emitOpError("dimension ")
                    << index << " of a memref of rank " << view.sizes.size());
  host.set(dim.getResult(),
           Attribute(IntegerAttr::get(dim.getType(), view.sizes[index])));
  return {};
}

Result<void> MemoryCalls::visitCopy(Operation *op) {
  auto copy = cast<memref::CopyOp>(op);
  MGPU_TRY_ASSIGN(auto source, host.memrefOf(op, copy.getSource()));
  MGPU_TRY_ASSIGN(auto target, host.memrefOf(op, copy.getTarget()));
  return host.recorder.copy({target, source}, {host.placeOf(op->getLoc())});
}

/// Whether the view starts inside its buffer and its farthest elements, and so
/// all sums on the way to them, stay within it.
static bool staysInside(const View &view, const Buffer &buffer) {
  __int128 low = view.offset, high = view.offset;
  for (auto [size, stride] : llvm::zip(view.sizes, view.strides)) {
    if (size <= 0)
      return size == 0;
    __int128 reach = __int128(size - 1) * stride;
    (reach < 0 ? low : high) += reach;
  }
  return low >= 0 &&
         high < __int128(buffer.sizeBytes / sizeBytes(buffer.elementType));
}

Result<void> MemoryCalls::visitSubview(Operation *op) {
  auto subview = cast<memref::SubViewOp>(op);
  MGPU_TRY_ASSIGN(auto source, host.memrefOf(op, subview.getSource()));
  View view{source.buffer, source.offset, {}, {}};
  llvm::SmallBitVector dropped = subview.getDroppedDims();
  for (size_t k = 0; k < source.sizes.size(); ++k) {
    auto offset =
        host.integerOf(op, subview.getMixedOffsets()[k], "the offset");
    auto size = host.integerOf(op, subview.getMixedSizes()[k], "the size");
    auto stride =
        host.integerOf(op, subview.getMixedStrides()[k], "the stride");
    for (const auto *each : {&offset, &size, &stride})
      MGPU_TRY(*each);
    __int128 last = *offset + __int128(*size - 1) * *stride;
    if (*size < 0 || (*size > 0 && (*offset < 0 || *offset >= source.sizes[k] ||
                                    last < 0 || last >= source.sizes[k])))
      return reported(op->emitOpError("dimension ")
                      << k << ", " << *size << " elements from " << *offset
                      << " by steps of " << *stride << ", leaves the "
                      << source.sizes[k] << " of its source");
    // An empty view may start anywhere: it is not used.
    if (*offset >= 0 && *offset <= source.sizes[k])
      view.offset += *offset * source.strides[k];
    if (dropped.test(k))
      continue;
    int64_t step;
    if (llvm::MulOverflow(source.strides[k], *stride, step))
      return reported(op->emitOpError("the stride ")
                      << *stride << " of dimension " << k << " is too large");
    view.sizes.push_back(*size);
    view.strides.push_back(step);
  }
  host.set(subview.getResult(), std::move(view));
  return {};
}

Result<void> MemoryCalls::visitReinterpretCast(Operation *op) {
  auto reinterpret = cast<memref::ReinterpretCastOp>(op);
  MGPU_TRY_ASSIGN(auto source, host.memrefOf(op, reinterpret.getSource()));
  View view{source.buffer, 0, {}, {}};
  MGPU_TRY_ASSIGN(
      auto offset,
      host.integerOf(op, reinterpret.getMixedOffsets()[0], "the offset"));
  view.offset = offset;
  for (auto [size, stride] :
       llvm::zip(reinterpret.getMixedSizes(), reinterpret.getMixedStrides())) {
    auto sizeValue = host.integerOf(op, size, "the size");
    auto strideValue = host.integerOf(op, stride, "the stride");
    MGPU_TRY(sizeValue);
    MGPU_TRY(strideValue);
    view.sizes.push_back(*sizeValue);
    view.strides.push_back(*strideValue);
  }
  if (!staysInside(view, host.recorder.dag().buffer(view.buffer)))
    return reported(op->emitOpError("reaches outside buffer '")
                    << host.recorder.dag().buffer(view.buffer).name << "'");
  host.set(reinterpret.getResult(), std::move(view));
  return {};
}

Result<void> MemoryCalls::visitTranspose(Operation *op) {
  auto transpose = cast<memref::TransposeOp>(op);
  MGPU_TRY_ASSIGN(auto source, host.memrefOf(op, transpose.getIn()));
  View view{source.buffer, source.offset, {}, {}};
  for (AffineExpr from : transpose.getPermutation().getResults()) {
    const unsigned dim = cast<AffineDimExpr>(from).getPosition();
    view.sizes.push_back(source.sizes[dim]);
    view.strides.push_back(source.strides[dim]);
  }
  host.set(transpose.getResult(), std::move(view));
  return {};
}

/// The view with each dimension cut into those of its group in `groups`, whose
/// sizes are `sizes`.
static View expand(const View &source, ArrayRef<int64_t> sizes,
                   ArrayRef<ReassociationIndices> groups) {
  View view{source.buffer, source.offset, sizes.vec(), {}};
  view.strides.assign(sizes.size(), 1);
  for (auto [stride, group] : llvm::zip(source.strides, groups)) {
    int64_t step = stride;
    for (int64_t dim : llvm::reverse(group)) {
      view.strides[dim] = step;
      step *= sizes[dim];
    }
  }
  return view;
}

/// The view with one dimension for each group; nothing where the elements of a
/// group are not evenly apart.
static std::optional<View> collapse(const View &source, ArrayRef<int64_t> sizes,
                                    ArrayRef<ReassociationIndices> groups) {
  View view{source.buffer, source.offset, sizes.vec(), {}};
  for (const ReassociationIndices &group : groups) {
    std::optional<int64_t> innermost, next;
    for (int64_t dim : llvm::reverse(group)) {
      if (source.sizes[dim] == 1)
        continue;
      if (next && source.strides[dim] != *next)
        return std::nullopt;
      if (!innermost)
        innermost = source.strides[dim];
      next = source.strides[dim] * source.sizes[dim];
    }
    view.strides.push_back(innermost.value_or(1));
  }
  return view;
}

Result<void> MemoryCalls::visitReshape(Operation *op) {
  MGPU_TRY_ASSIGN(auto source, host.memrefOf(op, op->getOperand(0)));
  auto type = cast<MemRefType>(op->getResult(0).getType());
  if (!type.hasStaticShape())
    return notSupported(op, "is supported for views of static shape only");
  std::optional<View> view;
  if (auto each = dyn_cast<memref::ExpandShapeOp>(op))
    view = expand(source, type.getShape(), each.getReassociationIndices());
  else
    view =
        collapse(source, type.getShape(),
                 cast<memref::CollapseShapeOp>(op).getReassociationIndices());
  if (!view)
    return notSupported(op, "is supported for dimensions whose elements are "
                            "evenly apart; copy the view first");
  host.set(op->getResult(0), std::move(*view));
  return {};
}

/// The bytes of a dense constant.
static std::vector<std::byte> bytesOf(DenseElementsAttr elements,
                                      uint32_t bytes) {
  std::vector<std::byte> contents(uint64_t(elements.getNumElements()) * bytes);
  std::byte *out = contents.data();
  auto put = [&](llvm::APInt bits) {
    uint64_t word = bits.zextOrTrunc(64).getZExtValue();
    std::memcpy(out, &word, bytes); // little-endian, as x86-64 and GPUs are
    out += bytes;
  };
  if (isa<FloatType>(elements.getElementType()))
    for (llvm::APFloat value : elements.getValues<llvm::APFloat>())
      put(value.bitcastToAPInt());
  else
    for (llvm::APInt value : elements.getValues<llvm::APInt>())
      put(value);
  return contents;
}

Result<void> MemoryCalls::visitGetGlobal(Operation *op) {
  auto get = cast<memref::GetGlobalOp>(op);
  auto global = module.lookupSymbol<memref::GlobalOp>(get.getName());
  if (!global)
    return reported(op->emitOpError("names no memref.global of this module"));
  if (auto at = globals.find(global); at != globals.end()) {
    host.set(get.getResult(), host.recorder.whole(at->second));
    return {};
  }
  auto type = cast<MemRefType>(global.getType());
  if (!type.hasStaticShape() || !elementTypeOf(type.getElementType()))
    return notSupported(op,
                        "globals must have a static shape of plain numbers");
  BufferRole role = BufferRole::HostLocal;
  std::vector<std::byte> contents;
  if (global.getInitialValue() && !global.isUninitialized()) {
    auto elements = dyn_cast<DenseElementsAttr>(*global.getInitialValue());
    if (!elements)
      return notSupported(op, "only dense initial values are supported");
    role = BufferRole::Constant;
    contents = bytesOf(elements,
                       mgpu::sizeBytes(*elementTypeOf(type.getElementType())));
  }
  globals[global] = host.allocate(get.getResult(), global.getSymName().str(),
                                  DeviceId::host(), role, std::move(contents));
  return {};
}

} // namespace mgpu::planner

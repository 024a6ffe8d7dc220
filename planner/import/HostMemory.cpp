// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// memref operations of host code: allocations and views.
#include "planner/import/Interpreter.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>

namespace mgpu::planner {

using namespace mlir;

bool Interpreter::visitMemory(Operation *op, LogicalResult &result) {
  if (op->getName().getDialectNamespace() != "memref")
    return false;
  if (isa<memref::AllocOp, memref::AllocaOp>(op)) {
    auto type = cast<MemRefType>(op->getResult(0).getType());
    if (!type.hasStaticShape() || !type.getLayout().isIdentity() ||
        !elementTypeOf(type.getElementType())) {
      result = notSupported(op, "host memory of type " + Twine(textOf(type)) +
                                    " cannot be captured: shapes must be "
                                    "static and elements plain numbers");
      return true;
    }
    BufferId buffer = addBuffer(nameOf(op->getLoc(), "host"), DeviceId::host(),
                                BufferRole::HostLocal, type);
    set(op->getResult(0),
        MemRefValue{buffer,
                    0,
                    {type.getShape().begin(), type.getShape().end()},
                    rowMajorStrides(type.getShape())});
  } else if (auto dealloc = dyn_cast<memref::DeallocOp>(op)) {
    result = freeBuffer(op, dealloc.getMemref(), nullptr);
  } else if (auto cast = dyn_cast<memref::CastOp>(op)) {
    auto source = memrefOf(op, cast.getSource());
    auto type = mlir::dyn_cast<MemRefType>(cast.getResult().getType());
    if (failed(source))
      result = failure();
    else
      set(cast.getResult(), *source);
    for (size_t k = 0; succeeded(source) && type && k < source->sizes.size();
         ++k)
      if (!type.isDynamicDim(k) && type.getDimSize(k) != source->sizes[k])
        result = op->emitOpError("dimension ")
                 << k << " is cast to " << type.getDimSize(k) << ", but it is "
                 << source->sizes[k] << " long";
  } else if (isa<memref::SubViewOp>(op)) {
    result = visitSubview(op);
  } else if (isa<memref::ReinterpretCastOp>(op)) {
    result = visitReinterpretCast(op);
  } else if (isa<memref::CollapseShapeOp, memref::ExpandShapeOp>(op)) {
    result = visitReshape(op);
  } else if (isa<memref::GetGlobalOp>(op)) {
    result = visitGetGlobal(op);
  } else if (auto dim = dyn_cast<memref::DimOp>(op)) {
    auto view = memrefOf(op, dim.getSource());
    auto index = integerOf(op, dim.getIndex(), "the dimension");
    if (failed(view) || failed(index))
      result = failure();
    else if (*index < 0 || size_t(*index) >= view->sizes.size())
      result = op->emitOpError("dimension ")
               << *index << " of a memref of rank " << view->sizes.size();
    else
      set(dim.getResult(),
          Attribute(IntegerAttr::get(dim.getType(), view->sizes[*index])));
  } else if (auto copyOp = dyn_cast<memref::CopyOp>(op)) {
    auto source = memrefOf(op, copyOp.getSource());
    auto target = memrefOf(op, copyOp.getTarget());
    if (failed(source) || failed(target))
      result = failure();
    else
      result = copy(op, *target, *source,
                    mlir::cast<BaseMemRefType>(copyOp.getSource().getType())
                        .getElementType(),
                    Value(), "copy");
  } else {
    result = notSupported(
        op, "cannot be captured: host code may not touch memory itself; do it "
            "in a kernel or in the inputs");
  }
  return true;
}

/// Whether the view starts inside its buffer and its farthest elements, and so
/// all sums on the way to them, stay within it.
static bool staysInside(const MemRefValue &view, const Buffer &buffer) {
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

LogicalResult Interpreter::visitSubview(Operation *op) {
  auto subview = cast<memref::SubViewOp>(op);
  auto source = memrefOf(op, subview.getSource());
  if (failed(source))
    return failure();
  MemRefValue view{source->buffer, source->offset, {}, {}};
  llvm::SmallBitVector dropped = subview.getDroppedDims();
  for (size_t k = 0; k < source->sizes.size(); ++k) {
    auto offset = integerOf(op, subview.getMixedOffsets()[k], "the offset");
    auto size = integerOf(op, subview.getMixedSizes()[k], "the size");
    auto stride = integerOf(op, subview.getMixedStrides()[k], "the stride");
    if (failed(offset) || failed(size) || failed(stride))
      return failure();
    __int128 last = *offset + __int128(*size - 1) * *stride;
    if (*size < 0 ||
        (*size > 0 && (*offset < 0 || *offset >= source->sizes[k] || last < 0 ||
                       last >= source->sizes[k])))
      return op->emitOpError("dimension ")
             << k << ", " << *size << " elements from " << *offset
             << " by steps of " << *stride << ", leaves the "
             << source->sizes[k] << " of its source";
    // An empty view may start anywhere: it is not used.
    if (*offset >= 0 && *offset <= source->sizes[k])
      view.offset += *offset * source->strides[k];
    if (dropped.test(k))
      continue;
    int64_t step;
    if (llvm::MulOverflow(source->strides[k], *stride, step))
      return op->emitOpError("the stride ")
             << *stride << " of dimension " << k << " is too large";
    view.sizes.push_back(*size);
    view.strides.push_back(step);
  }
  set(subview.getResult(), std::move(view));
  return success();
}

LogicalResult Interpreter::visitReinterpretCast(Operation *op) {
  auto reinterpret = cast<memref::ReinterpretCastOp>(op);
  auto source = memrefOf(op, reinterpret.getSource());
  if (failed(source))
    return failure();
  MemRefValue view{source->buffer, 0, {}, {}};
  auto offset = integerOf(op, reinterpret.getMixedOffsets()[0], "the offset");
  if (failed(offset))
    return failure();
  view.offset = *offset;
  for (auto [size, stride] :
       llvm::zip(reinterpret.getMixedSizes(), reinterpret.getMixedStrides())) {
    auto sizeValue = integerOf(op, size, "the size");
    auto strideValue = integerOf(op, stride, "the stride");
    if (failed(sizeValue) || failed(strideValue))
      return failure();
    view.sizes.push_back(*sizeValue);
    view.strides.push_back(*strideValue);
  }
  if (!staysInside(view, dag.buffer(view.buffer)))
    return op->emitOpError("reaches outside buffer '")
           << dag.buffer(view.buffer).name << "'";
  set(reinterpret.getResult(), std::move(view));
  return success();
}

LogicalResult Interpreter::visitReshape(Operation *op) {
  auto source = memrefOf(op, op->getOperand(0));
  if (failed(source))
    return failure();
  auto type = cast<MemRefType>(op->getResult(0).getType());
  if (!type.hasStaticShape() ||
      ArrayRef(source->strides) != ArrayRef(rowMajorStrides(source->sizes)))
    return notSupported(op, "is supported for contiguous views of static "
                            "shape only");
  set(op->getResult(0),
      MemRefValue{source->buffer,
                  source->offset,
                  {type.getShape().begin(), type.getShape().end()},
                  rowMajorStrides(type.getShape())});
  return success();
}

LogicalResult Interpreter::visitGetGlobal(Operation *op) {
  auto get = cast<memref::GetGlobalOp>(op);
  auto global = module.lookupSymbol<memref::GlobalOp>(get.getName());
  if (!global)
    return op->emitOpError("names no memref.global of this module");
  auto type = cast<MemRefType>(global.getType());
  auto [at, isNew] = globals.try_emplace(global, BufferId{});
  if (isNew) {
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
      uint32_t bytes = mgpu::sizeBytes(*elementTypeOf(type.getElementType()));
      contents.resize(uint64_t(type.getNumElements()) * bytes);
      std::byte *out = contents.data();
      auto put = [&](llvm::APInt bits) {
        uint64_t word = bits.zextOrTrunc(64).getZExtValue();
        std::memcpy(out, &word, bytes); // little-endian, as x86-64 and GPUs are
        out += bytes;
      };
      if (isa<FloatType>(type.getElementType()))
        for (llvm::APFloat value : elements.getValues<llvm::APFloat>())
          put(value.bitcastToAPInt());
      else
        for (llvm::APInt value : elements.getValues<llvm::APInt>())
          put(value);
    }
    at->second =
        addBuffer(global.getSymName().str(), DeviceId::host(), role, type);
    dag.buffers.back().contents = std::move(contents);
  }
  set(get.getResult(),
      MemRefValue{at->second,
                  0,
                  {type.getShape().begin(), type.getShape().end()},
                  rowMajorStrides(type.getShape())});
  return success();
}

} // namespace mgpu::planner

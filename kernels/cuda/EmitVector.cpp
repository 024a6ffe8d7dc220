// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The vector dialect: a vector is a struct of elements, row-major.
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/FunctionEmitter.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

/// The reduction of the gpu dialect that does the same has the same name.
static std::optional<gpu::AllReduceOperation>
reductionOf(vector::CombiningKind kind) {
  return gpu::symbolizeAllReduceOperation(vector::stringifyCombiningKind(kind));
}

/// The first element of the part of a vector at a position, and how many
/// elements it has. None for a position that is poison.
std::optional<std::pair<std::string, int64_t>>
FunctionEmitter::partAt(VectorType type, ArrayRef<OpFoldResult> position) {
  int64_t size = type.getNumElements(), first = 0;
  std::string text;
  for (auto [at, extent] : llvm::zip(position, type.getShape())) {
    size /= extent;
    std::optional<int64_t> known = getConstantIntValue(at);
    if (known && (*known < 0 || *known >= extent))
      return std::nullopt;
    if (known) {
      first += *known * size;
      continue;
    }
    text += text.empty() ? "" : " + ";
    text += use(cast<Value>(at));
    if (size != 1)
      text += " * " + std::to_string(size);
  }
  if (text.empty())
    text = std::to_string(first);
  else if (first != 0)
    text += " + " + std::to_string(first);
  return std::pair(text, size);
}

/// The element of `from` that each element of `to`, to which it is broadcast,
/// has.
static SmallVector<int64_t> broadcastElements(VectorType from, VectorType to) {
  SmallVector<int64_t> elements;
  for (int64_t element = 0; element < to.getNumElements(); ++element) {
    int64_t rest = element, source = 0, stride = 1;
    for (auto [k, extent] : llvm::enumerate(llvm::reverse(to.getShape()))) {
      const int64_t at = rest % extent;
      rest /= extent;
      if (int64_t(k) >= from.getRank())
        break;
      const int64_t size = from.getDimSize(from.getRank() - 1 - int64_t(k));
      source += size == 1 ? 0 : at * stride;
      stride *= size;
    }
    elements.push_back(source);
  }
  return elements;
}

/// The element of a vector that is `first` after the one of a loop over
/// elements.
static std::string elementAt(const std::string &first) {
  return first == "0" ? "[lane]" : "[lane + " + first + "]";
}

/// name[element] = value(element) for each element whose value is not empty.
void FunctionEmitter::setElements(
    Value result, int64_t count,
    llvm::function_ref<std::string(int64_t)> value) {
  declare(result);
  SmallVector<std::string> statements;
  for (int64_t element = 0; element < count; ++element)
    if (std::string text = value(element); !text.empty())
      statements.push_back(scalars[result] + "[" + std::to_string(element) +
                           "] = " + text + ";");
  packed(statements);
}

/// A row of memory, whose elements `value` has or gets.
LogicalResult FunctionEmitter::moveRow(Operation *op, Value memref,
                                       ValueRange indices, Value value,
                                       bool isStore) {
  auto type = cast<VectorType>(value.getType());
  const Pointer &pointer = pointerOf(memref);
  // Vectors of other ranks are rows by now (ExpandOps.h).
  if (type.getRank() != 1 || pointer.strides.empty() ||
      isa<VectorType>(cast<MemRefType>(memref.getType()).getElementType()))
    return refuse(op, " in memory whose elements are vectors");
  // MLIR promises no more than the element's alignment unless it says so.
  unsigned bytes = unsigned(type.getNumElements()) *
                   std::max(1u, widthOf(type.getElementType()) / 8);
  auto alignment = op->getAttrOfType<IntegerAttr>("alignment");
  const Extent &stride = pointer.strides.back();
  bool isWide = alignment && alignment.getInt() >= bytes && bytes <= 16 &&
                llvm::isPowerOf2_32(bytes) && stride.value == 1;
  std::string at = element(memref, indices);
  if (isWide) {
    helper("loadAligned");
    std::string parameters = "<" + std::to_string(bytes) + ", " +
                             cType(type.getElementType()) + ", " +
                             std::to_string(type.getNumElements()) + ">(&" + at;
    if (isStore)
      out.line("storeAligned" + parameters + ", " + use(value) + ");");
    else
      bind(value, "loadAligned" + parameters + ")");
    return success();
  }
  std::string each = "(&" + at + ")[lane" +
                     (stride.value == 1 ? "" : " * " + stride.text) + "]";
  if (!isStore)
    declare(value);
  std::string element = use(value) + "[lane]";
  forElements(type.getNumElements(),
              isStore ? each + " = " + element : element + " = " + each);
  return success();
}

LogicalResult FunctionEmitter::emit(vector::LoadOp op) {
  return moveRow(op, op.getBase(), op.getIndices(), op.getResult(),
                 /*isStore=*/false);
}

LogicalResult FunctionEmitter::emit(vector::StoreOp op) {
  return moveRow(op, op.getBase(), op.getIndices(), op.getValueToStore(),
                 /*isStore=*/true);
}

LogicalResult FunctionEmitter::emit(vector::BroadcastOp op) {
  VectorType type = op.getResultVectorType();
  auto from = dyn_cast<VectorType>(op.getSourceType());
  int64_t period = from ? from.getNumElements() : 0;
  if (from && from.getShape() != type.getShape().take_back(from.getRank()) &&
      period != 1) {
    SmallVector<int64_t> elements = broadcastElements(from, type);
    setElements(op, type.getNumElements(), [&](int64_t element) {
      return use(op.getSource()) + "[" +
             std::to_string(elements[size_t(element)]) + "]";
    });
    return success();
  }
  // The source has the last dimensions as they are, so its elements repeat.
  declare(op);
  forElements(type.getNumElements(),
              scalars[op] + "[lane] = " + use(op.getSource()) +
                  (period > 1    ? "[lane % " + std::to_string(period) + "]"
                   : period == 1 ? "[0]"
                                 : ""));
  return success();
}

LogicalResult FunctionEmitter::emit(vector::FMAOp op) {
  return elementwise(op, [&](ArrayRef<std::string> v) {
    return fma(op.getVectorType().getElementType(), v);
  });
}

LogicalResult FunctionEmitter::emit(vector::ShuffleOp op) {
  VectorType from = op.getV1VectorType();
  if (from.getRank() != 1)
    return refuse(op, " other than of one-dimensional vectors");
  ArrayRef<int64_t> mask = op.getMask();
  const int64_t split = from.getNumElements();
  setElements(op, int64_t(mask.size()), [&](int64_t element) -> std::string {
    const int64_t at = mask[size_t(element)];
    if (at < 0) // poison
      return "";
    return use(at < split ? op.getV1() : op.getV2()) + "[" +
           std::to_string(at < split ? at : at - split) + "]";
  });
  return success();
}

LogicalResult FunctionEmitter::emit(vector::ShapeCastOp op) {
  scalars[op] = use(op.getSource());
  return success();
}

LogicalResult FunctionEmitter::emit(vector::ExtractOp op) {
  std::string source = use(op.getSource());
  auto part = partAt(op.getSourceVectorType(), op.getMixedPosition());
  if (!part)
    return refuse(op, " at a position that is not there");
  if (!isa<VectorType>(op.getType())) {
    std::string element = source + "[" + part->first + "]";
    bind(op, isNarrow(op) ? "(int)" + element : element);
    return success();
  }
  declare(op);
  forElements(part->second,
              scalars[op] + "[lane] = " + source + elementAt(part->first));
  return success();
}

LogicalResult FunctionEmitter::emit(vector::InsertOp op) {
  declare(op);
  std::string name = scalars[op];
  out.line(name + " = " + use(op.getDest()) + ";");
  std::string value = use(op.getValueToStore());
  auto part = partAt(op.getDestVectorType(), op.getMixedPosition());
  if (!part)
    return refuse(op, " at a position that is not there");
  if (!isa<VectorType>(op.getValueToStoreType()))
    out.line(name + "[" + part->first + "] = " + value + ";");
  else
    forElements(part->second,
                name + elementAt(part->first) + " = " + value + "[lane]");
  return success();
}

/// In the elements' order, from the accumulator if there is one.
LogicalResult FunctionEmitter::emit(vector::ReductionOp op) {
  auto kind = reductionOf(op.getKind());
  if (!kind)
    return refuse(op);
  std::string source = use(op.getVector());
  Type type = op.getType();
  std::string sum = names.fresh("sum");
  bool hasStart = bool(op.getAcc());
  out.line(cType(type) + " " + sum + " = " +
           (hasStart ? use(op.getAcc()) : source + "[0]") + ";");
  forElements(op.getSourceVectorType().getNumElements(),
              sum + " = " + combine(*kind, type, sum, source + "[lane]"),
              hasStart ? 0 : 1);
  scalars[op] = isNarrow(op) ? "(int)" + sum : sum;
  return success();
}

LogicalResult FunctionEmitter::emit(vector::FromElementsOp op) {
  declare(op);
  for (auto [element, value] : llvm::enumerate(op->getOperands()))
    out.line(scalars[op] + "[" + std::to_string(element) + "] = " + use(value) +
             ";");
  return success();
}

LogicalResult FunctionEmitter::emit(vector::ToElementsOp op) {
  for (auto [element, value] : llvm::enumerate(op->getResults()))
    bind(value, (isNarrow(value) ? "(int)" : "") + use(op.getSource()) + "[" +
                    std::to_string(element) + "]");
  return success();
}

LogicalResult FunctionEmitter::emit(vector::StepOp op) {
  declare(op);
  forElements(cast<VectorType>(op.getType()).getNumElements(),
              scalars[op] + "[lane] = lane");
  return success();
}

LogicalResult FunctionEmitter::vectorOp(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<vector::LoadOp, vector::StoreOp, vector::BroadcastOp, vector::FMAOp,
            vector::ShuffleOp, vector::ShapeCastOp, vector::ExtractOp,
            vector::InsertOp, vector::ReductionOp, vector::FromElementsOp,
            vector::ToElementsOp, vector::StepOp>(
          [&](auto each) { return emit(each); })
      .Default([&](Operation *) { return refuse(op); });
}

} // namespace mgpu::kernels::cuda

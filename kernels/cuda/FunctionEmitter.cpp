// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values, and the way from an operation to the file that emits it.
#include "kernels/cuda/FunctionEmitter.h"

#include "kernels/cuda/CudaTypes.h"
#include "kernels/lower/SubgroupMatrix.h"

#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

LogicalResult refuse(Operation *op, const Twine &why) {
  return op->emitOpError("cannot be emitted as CUDA C++") << why.str();
}

std::string FunctionEmitter::use(Value value) {
  auto known = scalars.find(value);
  if (known != scalars.end())
    return known->second;
  Attribute constant;
  if (matchPattern(value, m_Constant(&constant)))
    if (std::string text = literal(constant); !text.empty())
      return scalars[value] = text;
  llvm_unreachable("a value is used before it is emitted");
}

std::string FunctionEmitter::typeOf(Value value) {
  return isNarrow(value) ? "int" : cType(value.getType());
}

std::string FunctionEmitter::asLongLong(Value value) {
  std::string text = use(value);
  return isNarrow(value) ? "(long long)" + text : text;
}

std::string FunctionEmitter::asUnsigned(Value value) {
  return "(" + unsignedType(value.getType()) + ")" + use(value);
}

std::string FunctionEmitter::freshName(Value value, StringRef otherwise) {
  StringRef name = sourceName(value.getLoc());
  if (auto result = dyn_cast<OpResult>(value);
      result && result.getOwner()->getNumResults() > 1 && name.empty())
    name = otherwise;
  return names.fresh(name.empty() ? otherwise : name);
}

void FunctionEmitter::bind(Value result, const std::string &expression) {
  if (declared.contains(result)) {
    out.line(scalars[result] + " = " + expression + ";");
    return;
  }
  std::string name = freshName(result);
  scalars[result] = name;
  out.line("const " + typeOf(result) + " " + name + " = " + expression + ";");
}

SmallVector<std::string> FunctionEmitter::componentTypes(Value value) {
  auto type = dyn_cast<MemRefType>(value.getType());
  if (!type)
    return {typeOf(value)};
  SmallVector<std::string> types{pointerType(value)};
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  (void)type.getStridesAndOffset(strides, offset);
  types.append(type.getNumDynamicDims() +
                   llvm::count(strides, ShapedType::kDynamic),
               "long long");
  return types;
}

void FunctionEmitter::bindComponents(Value value, ArrayRef<std::string> parts) {
  auto type = dyn_cast<MemRefType>(value.getType());
  if (!type) {
    scalars[value] = parts[0];
    return;
  }
  Pointer pointer;
  pointer.base = parts[0];
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  (void)type.getStridesAndOffset(strides, offset);
  size_t next = 1;
  auto take = [&](int64_t known) {
    return ShapedType::isDynamic(known) ? Extent(parts[next++]) : Extent(known);
  };
  for (int64_t size : type.getShape())
    pointer.sizes.push_back(take(size));
  for (int64_t stride : strides)
    pointer.strides.push_back(take(stride));
  if (offset == 0) { // then the first element is where the buffer begins
    pointer.root = pointer.base;
    pointer.fromRoot = Extent(0);
  }
  pointers[value] = std::move(pointer);
}

SmallVector<std::string> FunctionEmitter::components(Value value) {
  auto type = dyn_cast<MemRefType>(value.getType());
  if (!type)
    return {use(value)};
  const Pointer &pointer = pointerOf(value);
  SmallVector<std::string> parts;
  parts.push_back(pointer.offset.value == 0
                      ? pointer.base
                      : pointer.base + " + " + pointer.offset.text);
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  (void)type.getStridesAndOffset(strides, offset);
  for (auto [known, size] : llvm::zip_equal(type.getShape(), pointer.sizes))
    if (ShapedType::isDynamic(known))
      parts.push_back(size.text);
  for (auto [known, stride] : llvm::zip_equal(strides, pointer.strides))
    if (ShapedType::isDynamic(known))
      parts.push_back(stride.text);
  return parts;
}

void FunctionEmitter::declare(Value value, StringRef wish) {
  if (declared.contains(value))
    return;
  if (isParts(value)) {
    out.line(newParts(value, wish));
    return;
  }
  std::string name = wish.empty() ? freshName(value) : names.fresh(wish);
  SmallVector<std::string> parts;
  for (auto [k, type] : llvm::enumerate(componentTypes(value))) {
    parts.push_back(k == 0 ? name : names.fresh(name + "_extent"));
    out.line(type + (StringRef(type).ends_with("*") ? "" : " ") + parts.back() +
             ";");
  }
  bindComponents(value, parts);
}

SmallVector<std::string> FunctionEmitter::variables(Value value) {
  if (!isa<MemRefType>(value.getType()))
    return {scalars.lookup(value)};
  const Pointer &pointer = pointerOf(value);
  SmallVector<std::string> parts{pointer.base};
  for (const Extent &extent :
       llvm::concat<const Extent>(pointer.sizes, pointer.strides))
    if (!extent.value)
      parts.push_back(extent.text);
  return parts;
}

void FunctionEmitter::assign(ValueRange to, ValueRange from) {
  SmallVector<Value> partsTo, partsFrom, restTo, restFrom;
  for (auto [target, source] : llvm::zip_equal(to, from)) {
    (isParts(target) ? partsTo : restTo).push_back(target);
    (isParts(target) ? partsFrom : restFrom).push_back(source);
  }
  if (!partsTo.empty()) {
    // First: they may read what the others change, not the other way round.
    size_t begin = out.text.size();
    inPart = true;
    assign(partsTo, partsFrom);
    inPart = false;
    out.headLines(begin, "MGPU_PARTS ");
    return assign(restTo, restFrom);
  }
  SmallVector<std::string> targets, sources, types;
  for (auto [target, source] : llvm::zip_equal(to, from)) {
    if (!isa<MemRefType>(target.getType()) && !scalars.count(target))
      continue; // nobody reads it
    SmallVector<std::string> parts = components(source);
    if (isNarrow(target) && !isNarrow(source))
      parts[0] = "(int)" + parts[0];
    for (auto [variable, part, type] :
         llvm::zip_equal(variables(target), parts, componentTypes(target)))
      if (variable != part) {
        targets.push_back(variable);
        sources.push_back(part);
        types.push_back(type);
      }
  }
  // A source is a name, a number, or a name after a cast or before " + ".
  auto reads = [](StringRef source, StringRef name) {
    auto inWord = [](char c) { return llvm::isAlnum(c) || c == '_'; };
    for (size_t at = source.find(name); at != StringRef::npos;
         at = source.find(name, at + 1)) {
      size_t end = at + name.size();
      if ((at == 0 || !inWord(source[at - 1])) &&
          (end == source.size() || !inWord(source[end])))
        return true;
    }
    return false;
  };
  for (size_t k = 0; k < sources.size(); ++k)
    for (size_t earlier = 0; earlier < k; ++earlier)
      if (reads(sources[k], targets[earlier])) {
        std::string name = names.fresh("next");
        out.line(types[k] + (StringRef(types[k]).ends_with("*") ? "" : " ") +
                 name + " = " + sources[k] + ";");
        sources[k] = name;
        break;
      }
  for (auto [target, source] : llvm::zip_equal(targets, sources))
    out.line(target + " = " + source + ";");
}

LogicalResult FunctionEmitter::elementwise(
    Operation *op,
    llvm::function_ref<std::string(ArrayRef<std::string>)> scalar) {
  assert(op->getNumResults() == 1 && "an elementwise operation has a result");
  Value result = op->getResult(0);
  SmallVector<std::string> operands;
  auto vector = dyn_cast<VectorType>(result.getType());
  for (Value operand : op->getOperands())
    operands.push_back(
        use(operand) +
        (vector && isa<VectorType>(operand.getType()) ? "[lane]" : ""));
  if (!vector) {
    bind(result, scalar(operands));
    return success();
  }
  std::string expression = scalar(operands);
  declare(result);
  forElements(vector.getNumElements(),
              scalars[result] + "[lane] = " + expression);
  return success();
}

void FunctionEmitter::forElements(int64_t count, const std::string &statement,
                                  int64_t first) {
  out.line("for (int lane = " + std::to_string(first) + "; lane < " +
           std::to_string(count) + "; ++lane)");
  ++out.depth;
  out.line(statement + ";");
  --out.depth;
}

void FunctionEmitter::packed(ArrayRef<std::string> statements) {
  std::string line;
  for (const std::string &statement : statements) {
    if (!line.empty() && line.size() + statement.size() > 90) {
      out.line(line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + statement;
  }
  if (!line.empty())
    out.line(line);
}

LogicalResult FunctionEmitter::checkTypes(Operation *op) {
  auto check = [&](Type type) {
    Type element = type;
    if (auto memref = dyn_cast<MemRefType>(type)) {
      SmallVector<int64_t> strides;
      int64_t offset = 0;
      if (failed(memref.getStridesAndOffset(strides, offset)))
        return failure();
      element = memref.getElementType();
    }
    std::string spelled = cType(element);
    if (spelled.empty())
      return failure();
    if (isa<VectorType, gpu::MMAMatrixType>(element))
      helper("vec");
    if (auto matrix = dyn_cast<gpu::MMAMatrixType>(element))
      element = storedElement(matrix);
    for (StringRef name : {"f16", "bf16", "f8e4m3", "f8e5m2"})
      if (cType(getElementTypeOrSelf(element)) == name)
        helper(name);
    return success();
  };
  for (Type type :
       llvm::concat<const Type>(SmallVector<Type>(op->getOperandTypes()),
                                SmallVector<Type>(op->getResultTypes())))
    if (failed(check(type)))
      return op->emitOpError("has a value of type ")
             << type << ", which cannot be emitted as CUDA C++";
  return success();
}

LogicalResult FunctionEmitter::operation(Operation *op) {
  if (op->hasTrait<OpTrait::ConstantLike>()) {
    // Scalars are written where they are used.
    Attribute constant;
    if (matchPattern(op, m_Constant(&constant)) && !literal(constant).empty())
      return checkTypes(op);
  }
  // Tokens of nvgpu have no type in C++.
  const bool isNvidia = isa<nvgpu::NVGPUDialect>(op->getDialect());
  if (!isNvidia && failed(checkTypes(op)))
    return failure();
  out.at(op->getLoc());
  if (isNvidia)
    return nvidiaOp(op);
  return TypeSwitch<Dialect *, LogicalResult>(op->getDialect())
      .Case<arith::ArithDialect, index::IndexDialect, ub::UBDialect>(
          [&](auto *) { return arithOp(op); })
      .Case<math::MathDialect>([&](auto *) { return mathOp(op); })
      .Case<memref::MemRefDialect>([&](auto *) { return memrefOp(op); })
      .Case<cf::ControlFlowDialect, func::FuncDialect, scf::SCFDialect>(
          [&](auto *) { return controlOp(op); })
      .Case<gpu::GPUDialect>([&](auto *) { return gpuOp(op); })
      .Case<vector::VectorDialect>([&](auto *) { return vectorOp(op); })
      .Default([&](Dialect *) { return refuse(op); });
}

LogicalResult FunctionEmitter::statements(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(statement(&op)))
      return failure();
  return success();
}

} // namespace mgpu::kernels::cuda

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memref dialect: pointers with known or named strides, and atomics.
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/FunctionEmitter.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

using facts::divisorOf;

bool mayBeWritten(Value memref, unsigned depth) {
  for (OpOperand &use : memref.getUses()) {
    Operation *user = use.getOwner();
    if (user->getName().getStringRef() == "memref.load" ||
        user->getName().getStringRef() == "vector.load" ||
        isa<memref::DimOp, gpu::SubgroupMmaLoadMatrixOp>(user))
      continue;
    if (isa<ViewLikeOpInterface>(user) && depth < 16 &&
        use.getOperandNumber() == 0 && user->getNumResults() == 1) {
      if (mayBeWritten(user->getResult(0), depth + 1))
        return true;
      continue;
    }
    return true;
  }
  return false;
}

std::string FunctionEmitter::pointerType(Value memref) {
  std::string element =
      cType(cast<MemRefType>(memref.getType()).getElementType());
  // A view of memory that is const must be const as well; where its root is
  // an argument of the kernel, views are const if all of them only read.
  Value root = memref;
  while (Operation *op = root.getDefiningOp()) {
    auto view = dyn_cast<ViewLikeOpInterface>(op);
    if (!view)
      break;
    root = view.getViewSource();
  }
  auto argument = dyn_cast<BlockArgument>(root);
  bool isConst = argument &&
                 isa<func::FuncOp>(argument.getOwner()->getParentOp()) &&
                 argument.getOwner()->isEntryBlock() && !mayBeWritten(root);
  return (isConst ? "const " : "") + element + " *";
}

const Pointer &FunctionEmitter::pointerOf(Value value) {
  auto known = pointers.find(value);
  if (known == pointers.end())
    llvm_unreachable("a memref is used before it is emitted");
  return known->second;
}

Extent FunctionEmitter::extentOf(OpFoldResult value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return Extent(*constant);
  return Extent(
      asLongLong(cast<Value>(value))); // sums and products of them are too
}

/// a * b and a + b, as numbers where both are.
static Extent times(const Extent &a, const Extent &b) {
  if (a.value && b.value)
    return Extent(*a.value * *b.value);
  if (a.value == 1)
    return b;
  if (b.value == 1)
    return a;
  if (a.value == 0 || b.value == 0)
    return Extent(0);
  return Extent(a.text + " * " + b.text);
}

static Extent plus(const Extent &a, const Extent &b) {
  if (a.value && b.value)
    return Extent(*a.value + *b.value);
  if (a.value == 0)
    return b;
  if (b.value == 0)
    return a;
  if (b.value && *b.value < 0)
    return Extent(a.text + " - " + std::to_string(-*b.value));
  return Extent(a.text + " + " + b.text);
}

/// The position of an element, in elements from the base.
std::string FunctionEmitter::linear(const Pointer &pointer, ValueRange indices,
                                    bool withOffset) {
  // All in int if every partial sum surely fits one.
  llvm::APInt low(128, 0), high(128, 0);
  bool isInt = true;
  int64_t constant =
      withOffset && pointer.offset.value ? *pointer.offset.value : 0;
  for (auto [index, stride] : llvm::zip_equal(indices, pointer.strides)) {
    auto bounds = kernel.ranges.of(index);
    if (!stride.value || !bounds || !isNarrow(index)) {
      isInt = false;
      continue;
    }
    llvm::APInt step(128, uint64_t(*stride.value), true);
    llvm::APInt a = bounds->low.sext(128) * step,
                b = bounds->high.sext(128) * step;
    low +=
        llvm::APIntOps::smin(llvm::APIntOps::smin(a, b), llvm::APInt(128, 0));
    high +=
        llvm::APIntOps::smax(llvm::APIntOps::smax(a, b), llvm::APInt(128, 0));
  }
  llvm::APInt most(128, uint64_t(std::abs(constant)));
  isInt &= (low - most).isSignedIntN(32) && (high + most).isSignedIntN(32);
  SmallVector<std::string> terms;
  for (auto [index, stride] : llvm::zip_equal(indices, pointer.strides)) {
    std::optional<int64_t> known = getConstantIntValue(index);
    if (known && stride.value) {
      constant += *known * *stride.value;
      continue;
    }
    if (stride.value == 0)
      continue;
    std::string term = isInt ? use(index) : asLongLong(index);
    if (stride.value != 1)
      term += " * " + stride.text;
    terms.push_back(term);
  }
  if (withOffset && !pointer.offset.value)
    terms.push_back(pointer.offset.text);
  std::string sum = llvm::join(terms, " + ");
  if (sum.empty())
    return std::to_string(constant);
  if (constant > 0)
    sum += " + " + std::to_string(constant);
  if (constant < 0)
    sum += " - " + std::to_string(-constant);
  return sum;
}

std::string FunctionEmitter::element(Value memref, ValueRange indices) {
  const Pointer &pointer = pointerOf(memref);
  return pointer.base + "[" + linear(pointer, indices, true) + "]";
}

std::string FunctionEmitter::loaded(memref::LoadOp load) {
  std::string plain = element(load.getMemRef(), load.getIndices());
  auto staged = kernel.stages.loads.find(load);
  if (staged == kernel.stages.loads.end())
    return plain;
  const auto &[number, at] = staged->second;
  const StageTile &tile = kernel.stages.tiles[number];
  std::string text = stageMacro(pointerOf(load.getMemRef()).base) + "(";
  for (size_t k = 0; k < 3; ++k)
    if (tile.along[k])
      text += std::to_string(at[k]) + (k == 0 && inPart ? " + part, " : ", ");
  return text + plain + ")";
}

static uint32_t divisorOf(const Extent &extent) {
  return extent.value ? divisorOf(*extent.value) : 1;
}

uint32_t FunctionEmitter::divisorAt(Value memref, ValueRange indices) {
  const Pointer &pointer = pointerOf(memref);
  uint32_t divisor = std::min(pointer.divisor, divisorOf(pointer.offset));
  for (auto [index, stride] : llvm::zip_equal(indices, pointer.strides))
    divisor = std::min(divisor, divisorOf(index) * divisorOf(stride));
  return divisor;
}

uint32_t FunctionEmitter::divisorAt(memref::LoadOp load) {
  uint32_t divisor = divisorAt(load.getMemRef(), load.getIndices());
  auto staged = kernel.stages.loads.find(load);
  if (staged == kernel.stages.loads.end())
    return divisor;
  const auto &[number, at] = staged->second;
  const StageTile &tile = kernel.stages.tiles[number];
  divisor = std::min(divisor, divisorOf(at[0]));
  if (tile.along[1] || tile.along[2]) // rows of the tile follow each other
    divisor = std::min(divisor, divisorOf(int64_t(tile.halo[0])));
  return divisor;
}

LogicalResult FunctionEmitter::emit(memref::AllocaOp op) {
  MemRefType type = op.getType();
  if (!type.hasStaticShape() || !type.getLayout().isIdentity())
    return refuse(op, " without a static size and the default layout");
  bool isShared = gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(type);
  std::string name = names.fresh(sourceName(op.getLoc()).empty()
                                     ? (isShared ? "tile" : "local")
                                     : sourceName(op.getLoc()));
  // The alignment of the widest access, of 16 bytes, that is emitted.
  std::string align = isShared ? "__align__(16) " : "";
  if (isShared && !kernel.bulk.isEmpty()) // tensor copies begin there
    align = "__align__(" + std::to_string(swizzlePattern) + ") ";
  else if (op.getAlignment().value_or(0) > 16)
    align = "__align__(" + std::to_string(*op.getAlignment()) + ") ";
  std::string line =
      (isShared ? "static __shared__ " : "") + align +
      cType(type.getElementType()) + " " + name + "[" +
      std::to_string(std::max<int64_t>(type.getNumElements(), 1)) + "];";
  out.line(line);
  bindComponents(op.getResult(), name);
  if (isShared)
    pointers[op.getResult()].divisor = facts::mostDivisor;
  return success();
}

LogicalResult FunctionEmitter::emit(memref::SubViewOp op) {
  Pointer view = pointerOf(op.getSource());
  Pointer source = view;
  Extent offset(0);
  uint32_t divisor = std::min(source.divisor, divisorOf(source.offset));
  for (auto [at, stride] :
       llvm::zip_equal(op.getMixedOffsets(), source.strides)) {
    offset = plus(offset, times(extentOf(at), stride));
    auto value = dyn_cast<Value>(at);
    divisor =
        std::min(divisor, (value ? divisorOf(value) : divisorOf(extentOf(at))) *
                              divisorOf(stride));
  }
  llvm::SmallBitVector dropped = op.getDroppedDims();
  view.sizes.clear();
  view.strides.clear();
  for (auto [k, size] : llvm::enumerate(op.getMixedSizes())) {
    if (dropped[k])
      continue;
    view.sizes.push_back(extentOf(size));
    Extent stride = times(extentOf(op.getMixedStrides()[k]), source.strides[k]);
    if (!stride.value && stride.text.find(' ') != std::string::npos) {
      std::string name = names.fresh("stride");
      out.line("const long long " + name + " = " + stride.text + ";");
      stride = Extent(name);
    }
    view.strides.push_back(stride);
  }
  if (offset.value && source.offset.value) {
    view.offset = Extent(*offset.value + *source.offset.value);
  } else {
    std::string name = freshName(op.getResult(), "view");
    Extent all = plus(offset, source.offset);
    out.line(pointerType(op.getResult()) + "const " + name + " = " +
             source.base + " + (" + all.text + ");");
    view.base = name;
    view.divisor = divisor;
    view.offset = Extent(0);
    view.fromRoot = std::nullopt;
    if (!source.root.empty())
      view.fromRoot = Extent("(" + name + " - " + source.root + ")");
  }
  pointers[op.getResult()] = std::move(view);
  return success();
}

LogicalResult FunctionEmitter::emit(memref::ReinterpretCastOp op) {
  // Offsets are from the buffer's base, not from the source's first element.
  const Pointer &source = pointerOf(op.getSource());
  if (source.root.empty())
    return refuse(op, " of a view whose buffer is not known here");
  Pointer view;
  view.base = view.root = source.root;
  view.divisor = source.base == source.root ? source.divisor : 1;
  view.fromRoot = Extent(0);
  view.offset = extentOf(op.getMixedOffsets()[0]);
  for (OpFoldResult size : op.getMixedSizes())
    view.sizes.push_back(extentOf(size));
  for (OpFoldResult stride : op.getMixedStrides())
    view.strides.push_back(extentOf(stride));
  pointers[op.getResult()] = std::move(view);
  return success();
}

/// expand_shape and collapse_shape, of static strides.
LogicalResult FunctionEmitter::emitReshape(Operation *op) {
  auto type = cast<MemRefType>(op->getResult(0).getType());
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (!type.hasStaticShape() ||
      failed(type.getStridesAndOffset(strides, offset)) ||
      llvm::is_contained(strides, ShapedType::kDynamic))
    return refuse(op, " with dynamic sizes or strides");
  Pointer view = pointerOf(op->getOperand(0));
  view.sizes.assign(type.getShape().begin(), type.getShape().end());
  view.strides.assign(strides.begin(), strides.end());
  pointers[op->getResult(0)] = std::move(view);
  return success();
}

LogicalResult FunctionEmitter::emit(memref::ViewOp op) {
  MemRefType type = op.getType();
  Pointer view;
  const Pointer &source = pointerOf(op.getSource());
  std::string element = cType(type.getElementType());
  std::string name = freshName(op.getResult(), "view");
  Extent offset = plus(source.offset, extentOf(op.getByteShift()));
  std::string constness =
      StringRef(pointerType(op.getResult())).starts_with("const ") ? "const "
                                                                   : "";
  out.line(constness + element + " *const " + name + " = (" + constness +
           element + " *)(" + source.base +
           (offset.value == 0 ? "" : " + " + offset.text) + ");");
  view.base = view.root = name;
  view.fromRoot = Extent(0);
  auto sizes = op.getSizes().begin();
  for (int64_t size : type.getShape())
    view.sizes.push_back(ShapedType::isDynamic(size) ? extentOf(*sizes++)
                                                     : Extent(size));
  Extent stride(1);
  for (const Extent &size : llvm::reverse(view.sizes)) {
    view.strides.insert(view.strides.begin(), stride);
    stride = times(size, stride);
  }
  for (Extent &each : view.strides)
    if (!each.value && each.text.find(' ') != std::string::npos) {
      std::string variable = names.fresh("stride");
      out.line("const long long " + variable + " = " + each.text + ";");
      each = Extent(variable);
    }
  pointers[op.getResult()] = std::move(view);
  return success();
}

void FunctionEmitter::give(Value result, const Extent &extent) {
  if (!extent.value) {
    bind(result, isNarrow(result) ? "(int)(" + extent.text + ")" : extent.text);
    return;
  }
  // Known here and not to the ranges: a literal of the type that others take
  // the value to have.
  const bool isInt = llvm::isInt<32>(*extent.value);
  scalars[result] = extent.text + (isNarrow(result) && isInt ? "" : "ll");
}

LogicalResult FunctionEmitter::emit(memref::ExtractStridedMetadataOp op) {
  const Pointer source = pointerOf(op.getSource());
  if (source.root.empty() || !source.fromRoot)
    return refuse(op, " of a view whose buffer is not known here");
  Pointer base;
  base.base = base.root = source.root;
  base.divisor = source.base == source.root ? source.divisor : 1;
  base.fromRoot = Extent(0);
  pointers[op.getBaseBuffer()] = base;
  give(op.getOffset(), plus(*source.fromRoot, source.offset));
  for (auto [result, size] : llvm::zip_equal(op.getSizes(), source.sizes))
    give(result, size);
  for (auto [result, stride] : llvm::zip_equal(op.getStrides(), source.strides))
    give(result, stride);
  return success();
}

LogicalResult FunctionEmitter::emit(memref::LoadOp op) {
  bind(op, (isNarrow(op) ? "(int)" : "") + loaded(op));
  return success();
}

LogicalResult FunctionEmitter::emit(memref::StoreOp op) {
  out.line(element(op.getMemRef(), op.getIndices()) + " = " +
           use(op.getValueToStore()) + ";");
  return success();
}

LogicalResult FunctionEmitter::emit(memref::DimOp op) {
  std::optional<int64_t> index = op.getConstantIndex();
  if (!index)
    return refuse(op, " with an index that is not constant");
  const Pointer &pointer = pointerOf(op.getSource());
  if (*index < 0 || *index >= int64_t(pointer.sizes.size()))
    return refuse(op, " of a dimension that is not there");
  give(op, pointer.sizes[size_t(*index)]);
  return success();
}

/// An operation whose result is its operand, with a type that says more or
/// less of it.
LogicalResult FunctionEmitter::emitSameMemory(Operation *op) {
  if (!isa<MemRefType>(op->getOperand(0).getType()) ||
      !isa<MemRefType>(op->getResult(0).getType()))
    return refuse(op, " for unranked memrefs");
  Pointer pointer = pointerOf(op->getOperand(0));
  pointers[op->getResult(0)] = std::move(pointer);
  return success();
}

LogicalResult FunctionEmitter::memrefOp(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<memref::LoadOp, memref::StoreOp, memref::AllocaOp,
            memref::SubViewOp, memref::ReinterpretCastOp, memref::ViewOp,
            memref::ExtractStridedMetadataOp, memref::AtomicRMWOp,
            memref::GenericAtomicRMWOp, memref::DimOp>(
          [&](auto each) { return emit(each); })
      .Case<memref::ExpandShapeOp, memref::CollapseShapeOp>(
          [&](auto) { return emitReshape(op); })
      .Case<memref::CastOp, memref::MemorySpaceCastOp,
            memref::AssumeAlignmentOp>([&](auto) { return emitSameMemory(op); })
      .Default([&](Operation *) { return refuse(op); });
}

/// CUDA's function for the kind, which it has for int, unsigned, unsigned long
/// long, float and double, and the type to cast to for it; empty for none.
static std::pair<StringRef, std::string> builtinOf(arith::AtomicRMWKind kind,
                                                   Type type) {
  using Kind = arith::AtomicRMWKind;
  const unsigned width = widthOf(type);
  if (width < 32)
    return {};
  const std::string word = width == 64 ? "unsigned long long" : "unsigned";
  switch (kind) {
  case Kind::addf:
    return {"atomicAdd", ""};
  case Kind::addi:
    return {"atomicAdd", word};
  case Kind::andi:
    return {"atomicAnd", word};
  case Kind::ori:
    return {"atomicOr", word};
  case Kind::xori:
    return {"atomicXor", word};
  case Kind::maxs:
    return {"atomicMax", cType(type)};
  case Kind::mins:
    return {"atomicMin", cType(type)};
  case Kind::maxu:
    return {"atomicMax", word};
  case Kind::minu:
    return {"atomicMin", word};
  default:
    return {};
  }
}

/// The value that `old` becomes; empty where the kind cannot be emitted.
std::string FunctionEmitter::updated(arith::AtomicRMWKind kind, Type type,
                                     const std::string &value) {
  using Kind = arith::AtomicRMWKind;
  const std::string cast = "(" + unsignedType(type) + ")";
  const bool isBool = widthOf(type) == 1;
  auto choose = [&](const char *sign, const std::string &as) {
    return as + "old" + sign + as + value + " ? old : " + value;
  };
  auto call = [&](const std::string &name) {
    return name + "(old, " + value + ")";
  };
  auto ofWidth = [&](std::string name) {
    return narrow(type, call(name + (type.isF64() ? "" : "f")));
  };
  switch (kind) {
  case Kind::assign:
    return value;
  case Kind::addi:
  case Kind::addf:
    return isBool ? "old != " + value : narrow(type, "old + " + value);
  case Kind::muli:
    return isBool ? "old & " + value
                  : "(" + cType(type) + ")(" + cast + "old * " + cast + value +
                        ")";
  case Kind::mulf:
    return narrow(type, "old * " + value);
  case Kind::andi:
    return "old & " + value;
  case Kind::ori:
    return "old | " + value;
  case Kind::xori:
    return "old ^ " + value;
  case Kind::maxs: // -1 is the signed value of a true i1
    return isBool ? "old & " + value : choose(" > ", "");
  case Kind::mins:
    return isBool ? "old | " + value : choose(" < ", "");
  case Kind::maxu:
    return choose(" > ", cast);
  case Kind::minu:
    return choose(" < ", cast);
  case Kind::maximumf:
    return narrow(type, call(helper("maximum")));
  case Kind::minimumf:
    return narrow(type, call(helper("minimum")));
  case Kind::maxnumf:
    return ofWidth("fmax");
  case Kind::minnumf:
    return ofWidth("fmin");
  default:
    return "";
  }
}

LogicalResult FunctionEmitter::emit(memref::AtomicRMWOp op) {
  Type type = op.getValue().getType();
  if (isa<VectorType>(type))
    return refuse(op, " for vectors");
  std::string at = "&" + element(op.getMemref(), op.getIndices());
  std::string value = use(op.getValue());
  if (auto [name, as] = builtinOf(op.getKind(), type); !name.empty()) {
    std::string call = name.str() + "(" +
                       (as.empty() ? at : "(" + as + " *)(" + at + ")") + ", " +
                       (as.empty() ? "" : "(" + as + ")") + value + ")";
    bind(op, as.empty() ? call : "(" + typeOf(op) + ")" + call);
    return success();
  }
  std::string next = updated(op.getKind(), type, value);
  if (next.empty())
    return refuse(op, " of this kind");
  std::string t = cType(type);
  bind(op, helper("atomicUpdate") + "<" + t + ">(" + at + ", [&](" + t +
               " old) -> " + t + " { return " + next + "; })");
  return success();
}

LogicalResult FunctionEmitter::emit(memref::GenericAtomicRMWOp op) {
  Type type = op.getResult().getType();
  if (isa<VectorType>(type))
    return refuse(op, " for vectors");
  std::string function;
  if (failed(emitCombiner(op.getRegion(), op, function)))
    return failure();
  bind(op.getResult(), helper("atomicUpdate") + "<" + cType(type) + ">(&" +
                           element(op.getMemref(), op.getIndices()) + ", " +
                           function + ")");
  return success();
}

} // namespace mgpu::kernels::cuda

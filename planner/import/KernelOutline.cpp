// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/KernelOutline.h"

#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/MgpuDialect.h"
#include "support/Sha256.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/Support/raw_ostream.h"

namespace mgpu::planner {

using namespace mlir;

namespace {

/// What one captured value becomes in the kernel.
struct Capture {
  Value value;
  Type type; ///< of the kernel's argument; null for a cloned constant
  KernelArgument argument;
};

/// The captured memref's type with every dynamic part filled in from the view;
/// the part of the offset the type does not state goes into the address.
MemRefType staticTypeOf(MemRefType type, const MemRefValue &view,
                        int64_t &addressOffset) {
  llvm::SmallVector<int64_t> strides;
  int64_t offset = 0;
  addressOffset = view.offset;
  if (succeeded(type.getStridesAndOffset(strides, offset)) &&
      !ShapedType::isDynamic(offset))
    addressOffset -= offset;
  else
    offset = 0;
  if (type.hasStaticShape() && type.getLayout().isIdentity())
    return type;
  auto layout = StridedLayoutAttr::get(type.getContext(), offset, view.strides);
  bool identity = offset == 0 && ArrayRef(view.strides) ==
                                     ArrayRef(rowMajorStrides(view.sizes));
  return MemRefType::get(view.sizes, type.getElementType(),
                         identity ? MemRefLayoutAttrInterface() : layout,
                         type.getMemorySpace());
}

} // namespace

uint64_t bitsOf(Attribute attribute) {
  if (auto integer = dyn_cast<IntegerAttr>(attribute))
    return integer.getValue().zextOrTrunc(64).getZExtValue();
  return cast<FloatAttr>(attribute)
      .getValue()
      .bitcastToAPInt()
      .zextOrTrunc(64)
      .getZExtValue();
}

void setDynamicSharedBytes(ModuleOp module, int64_t bytes) {
  if (bytes > 0)
    module.lookupSymbol("entry")->setAttr(
        "mgpu.dynamic_shared_bytes",
        Builder(module.getContext()).getI64IntegerAttr(bytes));
}

LogicalResult cloneCallees(Operation *root, ModuleOp from, ModuleOp into) {
  auto walked = root->walk([&](func::CallOp call) {
    if (into.lookupSymbol(call.getCallee()))
      return WalkResult::advance();
    auto callee = from.lookupSymbol<func::FuncOp>(call.getCallee());
    if (!callee || callee.isExternal()) {
      call.emitOpError("calls '")
          << call.getCallee() << "', which has no body in this module";
      return WalkResult::interrupt();
    }
    Operation *copy = callee->clone();
    SymbolTable::setSymbolVisibility(copy, SymbolTable::Visibility::Private);
    into.push_back(copy);
    return WalkResult(cloneCallees(copy, from, into));
  });
  return failure(walked.wasInterrupted());
}

namespace {

/// An op of the kernel that counts from the start of the root of `view`, which
/// a pointer to the view does not tell; null if there is none.
Operation *findUseOfRoot(ir::LaunchOp launch, Value view) {
  for (Operation *user : view.getUsers()) {
    if (!launch->isProperAncestor(user))
      continue;
    if (isa<memref::ReinterpretCastOp, memref::ExtractStridedMetadataOp,
            memref::ExtractAlignedPointerAsIndexOp>(user))
      return user;
    if (isa<ViewLikeOpInterface>(user))
      if (Operation *found = findUseOfRoot(launch, user->getResult(0)))
        return found;
  }
  return nullptr;
}

FailureOr<llvm::SmallVector<Capture>>
collectCaptures(ir::LaunchOp launch, ArrayRef<Value> values,
                llvm::function_ref<HostValue(Value)> valueOf) {
  llvm::SmallVector<Capture> captures;
  for (Value value : values) {
    Attribute constant;
    if (matchPattern(value, m_Constant(&constant)) && value.getDefiningOp()) {
      captures.push_back({value, Type(), {}});
      continue;
    }
    HostValue known = valueOf(value);
    if (auto *view = std::get_if<MemRefValue>(&known)) {
      auto type = dyn_cast<MemRefType>(value.getType());
      if (!type) { // a scalar in memory
        captures.push_back(
            {value, MemRefType::get({}, value.getType()), {view->buffer, 0}});
        continue;
      }
      int64_t offset = 0;
      Type kernelType = staticTypeOf(type, *view, offset);
      if (offset != 0)
        if (Operation *use = findUseOfRoot(launch, value))
          return use->emitOpError(
              "counts from the start of a buffer of which the kernel has only "
              "a view at an offset; capture the buffer itself");
      uint32_t bytes = mgpu::sizeBytes(*elementTypeOf(type.getElementType()));
      captures.push_back({value, kernelType, {view->buffer, offset * bytes}});
    } else if (auto *scalar = std::get_if<Attribute>(&known)) {
      captures.push_back({value, value.getType(), {bitsOf(*scalar), 0}});
    } else {
      return launch.emitOpError("kernel uses a value of type ")
             << value.getType() << " from host code; only memrefs and scalars "
             << "can be captured";
    }
  }
  return captures;
}

/// Builds the kernel's module. Errors are at the op that cannot be captured.
FailureOr<OwningOpRef<ModuleOp>> buildModule(ir::LaunchOp launch,
                                             ArrayRef<Capture> captures) {
  Location location = launch.getLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(location);
  llvm::SmallVector<Type> argumentTypes;
  for (const Capture &capture : captures)
    if (capture.type)
      argumentTypes.push_back(capture.type);
  OpBuilder builder(module->getBodyRegion());
  auto entry =
      func::FuncOp::create(builder, location, "entry",
                           builder.getFunctionType(argumentTypes, TypeRange()));

  IRMapping mapping;
  launch.getBody().cloneInto(&entry.getBody(), mapping);
  Block &block = entry.getBody().front();
  builder.setInsertionPointToStart(&block);
  for (BlockArgument workgroup : block.getArguments()) {
    auto type = dyn_cast<MemRefType>(workgroup.getType());
    if (!type)
      return launch.emitOpError("block argument of type ")
             << workgroup.getType() << " in a kernel is not supported";
    workgroup.replaceAllUsesWith(
        memref::AllocaOp::create(builder, location, type).getResult());
  }
  block.eraseArguments(0, block.getNumArguments());
  llvm::SmallDenseMap<Value, Value> insideOf;
  for (const Capture &capture : captures) {
    Value inside;
    if (!capture.type) {
      inside = builder.clone(*capture.value.getDefiningOp())->getResult(0);
    } else {
      inside = block.addArgument(capture.type, capture.value.getLoc());
      Type wanted = capture.value.getType();
      if (!isa<MemRefType>(wanted) && isa<MemRefType>(capture.type))
        inside = memref::LoadOp::create(builder, location, inside);
      else if (capture.type != wanted)
        inside = memref::CastOp::create(builder, location, wanted, inside);
    }
    insideOf[capture.value] = inside;
  }
  entry.walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      if (Value inside = insideOf.lookup(operand.get()))
        operand.set(inside);
  });
  for (ir::TerminatorOp terminator :
       llvm::to_vector(entry.getOps<ir::TerminatorOp>())) {
    builder.setInsertionPoint(terminator);
    func::ReturnOp::create(builder, location);
    terminator.erase();
  }
  auto walked = entry.walk([&](Operation *op) {
    if (op->getName().getDialectNamespace() == "mgpu" ||
        isa<memref::GetGlobalOp>(op)) {
      op->emitOpError("cannot be used inside a kernel");
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (walked.wasInterrupted() ||
      failed(cloneCallees(entry, launch->getParentOfType<ModuleOp>(), *module)))
    return failure();
  return module;
}

/// Where a matrix product's operands, the launch's `args`, are among the
/// arguments of its kernel.
void notePositions(ir::LaunchOp launch, ArrayRef<Capture> captures,
                   ModuleOp module) {
  if (!launch->hasAttr("mgpu.matmul"))
    return;
  llvm::SmallVector<int64_t> positions;
  for (Value arg : launch.getArgs()) {
    int64_t position = 0;
    for (const Capture &capture : captures) {
      if (capture.value == arg)
        break;
      position += capture.type != Type();
    }
    positions.push_back(position);
  }
  module.lookupSymbol("entry")->setAttr(
      "mgpu.matmul",
      Builder(launch.getContext()).getDenseI64ArrayAttr(positions));
}

/// The text of an operation as it is printed without locations, from that with
/// them: less costly than to print again.
std::string withoutLocations(llvm::StringRef text) {
  constexpr llvm::StringRef mark = " loc(";
  std::string out;
  out.reserve(text.size());
  // Past a string that begins at `at`, or past one character.
  auto step = [&](size_t at) {
    if (text[at] != '"')
      return at + 1;
    for (++at; at < text.size() && text[at] != '"'; ++at)
      at += text[at] == '\\';
    return std::min(at + 1, text.size());
  };
  size_t kept = 0; // from here to `at` is to be appended
  for (size_t at = 0; at < text.size();) {
    if (text[at] != ' ' || !text.substr(at).starts_with(mark)) {
      at = step(at);
      continue;
    }
    out += text.slice(kept, at);
    at += mark.size();
    for (int depth = 1; depth > 0 && at < text.size(); at = step(at))
      depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
    kept = at;
  }
  out += text.substr(kept);
  return out;
}

/// What else decides the kernel, beside the shape of its body.
std::vector<uintptr_t> signatureOf(Dim3 block, int64_t dynamicSharedBytes,
                                   ArrayRef<Capture> captures) {
  std::vector<uintptr_t> signature{block.x, block.y, block.z,
                                   uintptr_t(dynamicSharedBytes)};
  for (const Capture &capture : captures)
    if (capture.type)
      signature.push_back(
          reinterpret_cast<uintptr_t>(capture.type.getAsOpaquePointer()));
  return signature;
}

} // namespace

FailureOr<KernelTable::Outlined>
KernelTable::outline(ir::LaunchOp launch, Dim3 block,
                     int64_t dynamicSharedBytes,
                     llvm::function_ref<HostValue(Value)> valueOf) {
  auto [seen, isFirst] = byLaunch.try_emplace(launch);
  Body &body = seen->second;
  if (isFirst) {
    KernelShape shape(launch.getBody());
    body.captures = shape.captures;
    body.shape = shapes.numberOf(std::move(shape));
  }
  auto captures = collectCaptures(launch, body.captures, valueOf);
  if (failed(captures))
    return failure();
  Outlined result;
  for (const Capture &capture : *captures)
    if (capture.type)
      result.arguments.push_back(capture.argument);

  if (byShape.size() <= body.shape)
    byShape.resize(body.shape + 1);
  std::vector<uintptr_t> signature =
      signatureOf(block, dynamicSharedBytes, *captures);
  auto &made = byShape[body.shape];
  if (auto known = made.find(signature); known != made.end()) {
    result.kernel = known->second;
    return result;
  }

  auto module = buildModule(launch, *captures);
  if (failed(module))
    return failure();
  setDynamicSharedBytes(**module, dynamicSharedBytes);
  notePositions(launch, *captures, **module);
  auto function = launch->getParentOfType<func::FuncOp>();
  std::string base =
      (function ? function.getName() : StringRef("kernel")).str();
  if (auto name = launch->getAttrOfType<StringAttr>("mgpu.name"))
    base = name.str();
  result.kernel =
      intern(**module, launch, block, base, uint32_t(result.arguments.size()));
  made.emplace(std::move(signature), result.kernel);
  return result;
}

KernelId KernelTable::intern(ModuleOp module, ir::LaunchOp launch, Dim3 block,
                             const std::string &base, uint32_t numArguments) {
  KernelSpec spec;
  // Made of verified operations whose operands keep their types.
  llvm::raw_string_ostream source(spec.source);
  module->print(
      source,
      OpPrintingFlags().assumeVerified().useLocalScope().enableDebugInfo());
  // What the kernel does is its text without locations.
  std::string hashed = withoutLocations(spec.source);
  llvm::raw_string_ostream(hashed)
      << "\nblock " << block.x << ' ' << block.y << ' ' << block.z;
  spec.hash = Sha256().add(hashed).hex();
  auto [at, isNew] =
      byHash.try_emplace(spec.hash, KernelId{uint32_t(kernels.size())});
  if (isNew) {
    spec.name = base + "_kernel" + std::to_string(namesUsed[base]++);
    spec.location = ir::describeLocations(launch.getLoc());
    spec.block = block;
    spec.numArguments = numArguments;
    spec.source += '\n';
    kernels.push_back(std::move(spec));
  }
  return at->second;
}

} // namespace mgpu::planner

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/KernelOutline.h"

#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Hashing.h"

namespace mgpu::planner {

using namespace mlir;

namespace {

class Encoder {
public:
  Encoder(KernelShape &shape, Region &body) : shape(shape), body(body) {}

  void region(Region &region) {
    // Inverted, so that it is not a pointer and not the 0 that ends a block.
    word(~uintptr_t(std::distance(region.begin(), region.end())));
    for (Block &block : region) {
      word(numberOf(&block));
      word(block.getNumArguments());
      for (BlockArgument argument : block.getArguments())
        define(argument);
      // Post-order, so that captures come in the order of
      // getUsedValuesDefinedAbove.
      for (Operation &op : block)
        operation(op);
      word(uintptr_t(0)); // no operation's name: the block ends
    }
  }

private:
  void word(uintptr_t value) { shape.words.push_back(value); }
  void pointer(const void *at) { word(reinterpret_cast<uintptr_t>(at)); }
  uintptr_t numberOf(const void *pointer) {
    return numbers.try_emplace(pointer, numbers.size()).first->second;
  }
  void define(Value value) {
    word(numberOf(value.getAsOpaquePointer()));
    pointer(value.getType().getAsOpaquePointer());
  }

  void header(Operation &op) {
    pointer(op.getName().getAsOpaquePointer());
    pointer(op.getDiscardableAttrDictionary().getAsOpaquePointer());
    word(op.hashProperties());
    word(op.getNumResults());
    shape.ops.push_back(&op);
  }

  void operation(Operation &op) {
    for (Region &inner : op.getRegions())
      region(inner);
    header(op);
    word(op.getNumRegions());
    word(op.getNumOperands());
    for (Value operand : op.getOperands())
      use(operand);
    for (Value result : op.getResults())
      define(result);
    word(op.getNumSuccessors());
    for (Block *successor : op.getSuccessors())
      word(numberOf(successor));
  }

  void use(Value value) {
    auto [at, isNew] =
        numbers.try_emplace(value.getAsOpaquePointer(), numbers.size());
    word(at->second);
    if (!isNew || body.isAncestor(value.getParentRegion()))
      return;
    shape.captures.push_back(value);
    pointer(value.getType().getAsOpaquePointer());
    // Constants are copied into the kernel, other captures are arguments.
    Operation *op = value.getDefiningOp();
    bool constant = op && matchPattern(op, m_Constant());
    word(constant);
    if (constant)
      header(*op);
  }

  KernelShape &shape;
  Region &body;
  llvm::SmallDenseMap<const void *, uintptr_t, 32> numbers;
};

} // namespace

KernelShape::KernelShape(Region &body) { Encoder(*this, body).region(body); }

/// Equal words name equal operations, so the lists match one to one.
static bool haveEqualProperties(ArrayRef<Operation *> some,
                                ArrayRef<Operation *> others) {
  for (auto [mine, theirs] : llvm::zip_equal(some, others))
    if (!mine->getName().compareOpProperties(mine->getPropertiesStorage(),
                                             theirs->getPropertiesStorage()))
      return false;
  return true;
}

uint32_t KernelShapes::numberOf(const KernelShape &shape) {
  // DenseMap keeps the two largest keys for itself.
  uint64_t hash = uint64_t(llvm::hash_combine_range(shape.words)) >> 1;
  uint32_t number = uint32_t(shapes.size());
  auto [at, isNew] = byHash.try_emplace(hash, number);
  uint32_t next = at->second;
  for (uint32_t known = next; !isNew; known = shapes[known].next) {
    if (shapes[known].words == ArrayRef(shape.words) &&
        haveEqualProperties(shapes[known].ops, shape.ops))
      return known;
    if (shapes[known].next == known)
      break;
  }
  shapes.push_back({ArrayRef(shape.words).copy(memory),
                    ArrayRef(shape.ops).copy(memory), next});
  at->second = number;
  return number;
}

namespace {

/// The captured memref's type with every dynamic part filled in from the view;
/// the part of the offset the type does not state goes into the address. The
/// strides that it states stay: those of dimensions of one element may differ.
MemRefType staticTypeOf(MemRefType type, const View &view,
                        int64_t &addressOffset) {
  llvm::SmallVector<int64_t> strides;
  int64_t offset = 0;
  addressOffset = view.offset;
  // MLIR takes the strides of a buffer without elements to be unknown.
  const bool isEmpty = llvm::is_contained(view.sizes, 0);
  if (!isEmpty && type.hasStaticShape() && type.getLayout().isIdentity())
    return type;
  const bool isKnown = succeeded(type.getStridesAndOffset(strides, offset));
  if (isKnown && !ShapedType::isDynamic(offset))
    addressOffset -= offset;
  else
    offset = 0;
  if (!isKnown || isEmpty)
    strides.assign(view.sizes.size(), ShapedType::kDynamic);
  for (auto [stride, known] : llvm::zip(strides, view.strides))
    if (ShapedType::isDynamic(stride))
      stride = known;
  auto layout = StridedLayoutAttr::get(type.getContext(), offset, strides);
  bool identity = !isEmpty && offset == 0 &&
                  ArrayRef(strides) == ArrayRef(rowMajorStrides(view.sizes));
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

FailureOr<llvm::SmallVector<Capture>> collectCaptures(ir::LaunchOp launch,
                                                      ArrayRef<Value> values,
                                                      HostValueOf valueOf) {
  llvm::SmallVector<Capture> captures;
  for (Value value : values) {
    Attribute constant;
    if (matchPattern(value, m_Constant(&constant)) && value.getDefiningOp()) {
      captures.push_back({value, Type(), {}});
      continue;
    }
    const HostValue &known = valueOf(value);
    if (auto *view = std::get_if<View>(&known)) {
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

/// All that decides the kernel, given the shape of its body.
llvm::SmallVector<uintptr_t, 16> signatureOf(uint32_t shape, Dim3 block,
                                             int64_t dynamicSharedBytes,
                                             ir::LaunchOp launch,
                                             ArrayRef<Capture> captures) {
  llvm::SmallVector<uintptr_t, 16> signature{shape, block.x, block.y, block.z,
                                             uintptr_t(dynamicSharedBytes)};
  // Attributes are one object for each value.
  for (StringRef name : {ir::clusterName, ir::sparseName, ir::productName})
    signature.push_back(reinterpret_cast<uintptr_t>(
        launch->getAttr(name).getAsOpaquePointer()));
  for (const Capture &capture : captures)
    if (capture.type)
      signature.push_back(
          reinterpret_cast<uintptr_t>(capture.type.getAsOpaquePointer()));
  return signature;
}

} // namespace

FailureOr<KernelTable::Outlined>
KernelTable::outline(ir::LaunchOp launch, Dim3 block,
                     int64_t dynamicSharedBytes, HostValueOf valueOf) {
  auto [seen, isFirst] = byLaunch.try_emplace(launch);
  Body &body = seen->second;
  if (isFirst) {
    KernelShape shape(launch.getBody());
    body.captures = shape.captures;
    body.shape = shapes.numberOf(shape);
  }
  auto captures = collectCaptures(launch, body.captures, valueOf);
  if (failed(captures))
    return failure();
  Outlined result;
  for (const Capture &capture : *captures)
    if (capture.type)
      result.arguments.push_back(capture.argument);

  auto signature =
      signatureOf(body.shape, block, dynamicSharedBytes, launch, *captures);
  StringRef key(reinterpret_cast<const char *>(signature.data()),
                signature.size_in_bytes());
  if (auto known = bySignature.find(key); known != bySignature.end()) {
    result.kernel = known->second;
    return result;
  }
  if (failed(checkKernelBody(launch)))
    return failure();
  KernelParts parts{launch, *captures, block, dynamicSharedBytes};
  auto function = launch->getParentOfType<func::FuncOp>();
  KernelSpec spec;
  spec.hash = hasher.hash(parts);
  spec.block = block;
  spec.numArguments = uint32_t(result.arguments.size());
  result.kernel = intern(
      std::move(spec), launch, function ? function.getName() : "kernel",
      [&] { return MlirKernel{printKernel(*buildKernelModule(parts))}; });
  bySignature.try_emplace(key, result.kernel);
  return result;
}

void KernelTable::keepFacts(KernelId kernel, KernelFacts facts) {
  const KernelSpec &spec = recorder.dag().kernels[kernel.value];
  facts.kernel = spec.hash;
  const bool isLarger =
      !spec.facts || facts.grid.volume() > spec.facts->grid.volume();
  if (isLarger && facts.areCountable())
    recorder.setFacts(kernel, std::move(facts));
}

KernelId KernelTable::intern(
    KernelSpec spec, ir::LaunchOp launch, StringRef base,
    llvm::function_ref<decltype(KernelSpec::source)()> sourceOf) {
  auto [at, isNew] = byHash.try_emplace(spec.hash);
  if (isNew) {
    if (auto name = launch->getAttrOfType<StringAttr>("mgpu.name"))
      base = name;
    spec.name = base.str() + "_kernel" + std::to_string(namesUsed[base]++);
    spec.location = ir::describeLocations(launch.getLoc());
    if (makesTexts)
      spec.source = sourceOf();
    at->second = recorder.addKernel(std::move(spec));
  }
  return at->second;
}

} // namespace mgpu::planner

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifier of launches, and what their attributes say. It trusts only its own
// operands' types and counts, as MgpuVerify.cpp does.
#include "dialect/mgpu/MgpuDialect.h"
#include "support/Spelling.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace mgpu::ir;
using mgpu::isIdentifier;

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

static LogicalResult verifyLaunchSizes(LaunchOp op, ValueRange sizes,
                                       StringRef what) {
  if (sizes.empty() || sizes.size() > 3)
    return op.emitOpError("expected 1 to 3 sizes of the ")
           << what << ", got " << sizes.size() << rule(op, 1);
  for (Value size : sizes) {
    std::optional<int64_t> value = getConstantIndex(size);
    if (value && *value < 1)
      return op.emitOpError("sizes of the ")
             << what << " must be at least 1, got " << *value << rule(op, 2);
  }
  return success();
}

static std::optional<int64_t> numberOf(Attribute attribute) {
  auto integer = dyn_cast_or_null<IntegerAttr>(attribute);
  if (!integer || integer.getValue().getSignificantBits() > 64)
    return std::nullopt;
  return integer.getValue().getSExtValue();
}

/// The numbers of `[1, 2]`, of `array<i64: 1, 2>`, or of `1`; none where it is
/// something else.
static std::optional<SmallVector<int64_t>> numbersOf(Attribute attribute) {
  if (auto dense = dyn_cast_or_null<DenseI64ArrayAttr>(attribute))
    return SmallVector<int64_t>(dense.asArrayRef());
  if (auto number = numberOf(attribute))
    return SmallVector<int64_t>{*number};
  auto array = dyn_cast_or_null<ArrayAttr>(attribute);
  if (!array)
    return std::nullopt;
  SmallVector<int64_t> numbers;
  for (Attribute each : array) {
    auto number = numberOf(each);
    if (!number)
      return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

static bool isListed(LaunchOp op, StringRef list, unsigned position) {
  auto numbers = numbersOf(op->getAttr(list));
  return !numbers || llvm::is_contained(*numbers, int64_t(position));
}

bool LaunchOp::mayRead(unsigned position) {
  return isListed(*this, "reads", position);
}

bool LaunchOp::mayWrite(unsigned position) {
  return isListed(*this, "writes", position);
}

SmallVector<std::pair<StringRef, SmallVector<int64_t>>>
LaunchOp::getTunables() {
  SmallVector<std::pair<StringRef, SmallVector<int64_t>>> all;
  if (auto tunables = (*this)->getAttrOfType<DictionaryAttr>("tunables"))
    for (NamedAttribute each : tunables)
      all.push_back({each.getName().getValue(), *numbersOf(each.getValue())});
  return all;
}

static LogicalResult verifyTunables(LaunchOp op) {
  Attribute attribute = op->getAttr("tunables");
  if (!attribute)
    return success();
  auto tunables = dyn_cast<DictionaryAttr>(attribute);
  if (!tunables)
    return op.emitOpError("'tunables' must be like {TILE = [16, 32]}, got ")
           << attribute << rule(op, 16);
  constexpr size_t most = 8; // the space is their product
  if (tunables.size() > most)
    return op.emitOpError("takes at most ")
           << most << " tunables, got " << tunables.size() << rule(op, 17);
  constexpr uint64_t mostValues = 64, mostTogether = 1 << 20;
  uint64_t together = 1;
  for (NamedAttribute each : tunables) {
    StringRef name = each.getName().getValue();
    auto values = numbersOf(each.getValue());
    if (!isIdentifier(name))
      return op.emitOpError("tunable '")
             << name << "' must be a name that can be a macro" << rule(op, 18);
    if (!values || values->empty() || llvm::any_of(*values, [](int64_t v) {
          return v < 0 || v > UINT32_MAX;
        }))
      return op.emitOpError("tunable '")
             << name << "' must list numbers from 0 to 2^32 - 1, as in " << name
             << " = [16, 32]" << rule(op, 19);
    if (values->size() > mostValues)
      return op.emitOpError("tunable '")
             << name << "' lists " << values->size() << " values; the most are "
             << mostValues << rule(op, 20);
    together *= values->size();
    if (together > mostTogether)
      return op.emitOpError("has tunables with more than ")
             << mostTogether << " combinations: list fewer values"
             << rule(op, 21);
    for (size_t k = 0; k < values->size(); ++k)
      if (llvm::is_contained(ArrayRef(*values).drop_front(k + 1), (*values)[k]))
        return op.emitOpError("tunable '") << name << "' lists " << (*values)[k]
                                           << " twice" << rule(op, 22);
  }
  return success();
}

/// A kernel that is not a body: its arguments, and which of them it touches.
static LogicalResult verifySourceArguments(LaunchOp op) {
  Attribute source = op->getAttr(LaunchOp::getSourceAttrName());
  if (!llvm::hasSingleElement(op.getBody().front()) ||
      op.getBody().getNumArguments() != 0)
    return op.emitOpError("takes its kernel from ")
           << source << ", so it has no body and no workgroup buffers"
           << rule(op, 11);
  for (auto [k, arg] : llvm::enumerate(op.getArgs()))
    if (!isa<MemRefType>(arg.getType()) && !arg.getType().isIntOrIndexOrFloat())
      return op.emitOpError("argument ")
             << k << " of a kernel given as source must be a memref or a "
             << "number, got " << arg.getType() << rule(op, 12);
  for (StringRef list : {"reads", "writes"}) {
    Attribute attribute = op->getAttr(list);
    if (!attribute)
      continue;
    auto positions = numbersOf(attribute);
    if (!positions)
      return op.emitOpError("'")
             << list << "' must list positions of arguments, as in [0, 1]"
             << rule(op, 13);
    for (int64_t position : *positions)
      if (position < 0 || size_t(position) >= op.getArgs().size() ||
          !isa<MemRefType>(op.getArgs()[position].getType()))
        return op.emitOpError("'")
               << list << "' names argument " << position
               << ", which is not a memref among the " << op.getArgs().size()
               << " arguments" << rule(op, 14);
  }
  for (auto [k, arg] : llvm::enumerate(op.getArgs()))
    if (isa<MemRefType>(arg.getType()) && !op.mayRead(k) && !op.mayWrite(k))
      return op.emitOpError("argument ")
             << k << " is neither in 'reads' nor in 'writes'" << rule(op, 15);
  return success();
}

static LogicalResult verifyRegistered(LaunchOp op) {
  Attribute registered = op->getAttr(LaunchOp::getRegisteredAttrName());
  if (!registered)
    return success();
  if (!op.isOpaque() || !isa<StringAttr>(registered))
    return op.emitOpError("'registered' must be a string beside 'opaque'")
           << rule(op, 25);
  bool wasWritten = false;
  for (auto [k, arg] : llvm::enumerate(op.getArgs())) {
    if (std::exchange(wasWritten, op.mayWrite(k)) > op.mayWrite(k))
      return op.emitOpError("argument ")
             << k << " of a registered function is only read, and stands after "
             << "one that is written" << rule(op, 25);
    auto type = dyn_cast<MemRefType>(arg.getType());
    if (!type || !type.hasStaticShape() ||
        !type.areTrailingDimsContiguous(type.getRank()))
      return op.emitOpError("argument ")
             << k << " of a registered function must be a memref of static "
             << "shape without gaps, got " << arg.getType() << rule(op, 25);
  }
  return success();
}

static LogicalResult verifySource(LaunchOp op) {
  if (!op.hasSource()) {
    for (StringRef name : {"entry", "reference", "tunables", "reads", "writes",
                           "objects", "opaque", "registered"})
      if (op->hasAttr(name))
        return op.emitOpError("has '")
               << name << "', which belongs to a kernel given by 'source'"
               << rule(op, 7);
    return success();
  }
  auto source = op->getAttrOfType<StringAttr>("source");
  if (!source || source.getValue().empty())
    return op.emitOpError("'source' must be the path of a file of CUDA C++")
           << rule(op, 8);
  if (op.isOpaque())
    for (StringRef name : {"entry", "reference", "tunables", "objects"})
      if (op->hasAttr(name))
        return op.emitOpError("is opaque, and has '")
               << name << "' of a kernel that is known" << rule(op, 24);
  auto entry = op->getAttrOfType<StringAttr>("entry");
  if (failed(verifyRegistered(op)))
    return failure();
  if (op.isOpaque())
    return verifySourceArguments(op);
  if (!entry || !isIdentifier(entry.getValue()))
    return op.emitOpError("needs 'entry', the name of an extern \"C\" "
                          "__global__ function in ")
           << source << rule(op, 9);
  if (Attribute objects = op->getAttr("objects")) {
    auto all = dyn_cast<DictionaryAttr>(objects);
    if (!all || all.empty() || !llvm::all_of(all, [](NamedAttribute each) {
          return isa<StringAttr>(each.getValue());
        }))
      return op.emitOpError("'objects' must be like {sm_90 = \"...\"}")
             << rule(op, 23);
  }
  if (Attribute reference = op->getAttr("reference");
      reference && !isa<FlatSymbolRefAttr>(reference))
    return op.emitOpError("'reference' must name a function, as in @name")
           << rule(op, 10);
  if (failed(verifySourceArguments(op)))
    return failure();
  return verifyTunables(op);
}

LogicalResult LaunchOp::verify() {
  if (failed(verifySource(*this)))
    return failure();
  if (getConstantDeviceIndex(getDevice()) == hostDeviceIndex)
    return emitOpError("cannot launch a kernel on the host") << rule(*this, 3);
  if (failed(verifyLaunchSizes(*this, getGrid(), "grid")) ||
      failed(verifyLaunchSizes(*this, getBlock(), "block")))
    return failure();
  if (Value size = getDynamicSharedMemorySize()) {
    std::optional<int64_t> value = getConstantIndex(size);
    if (value && *value < 0)
      return emitOpError(
                 "dynamic shared memory size must not be negative, got ")
             << *value << rule(*this, 4);
  }
  if (unsigned ids = getNumIdArguments(); ids % 3 != 0 || ids > 12)
    return emitOpError("takes 0, 3, 6, 9 or 12 index arguments in its body "
                       "(block ids, thread ids, grid sizes, block sizes), got ")
           << ids << rule(*this, 5);
  for (Value arg : getWorkgroupBuffers()) {
    auto type = dyn_cast<MemRefType>(arg.getType());
    if (!type || !type.hasStaticShape() || !type.getLayout().isIdentity() ||
        !gpu::GPUDialect::isWorkgroupMemoryAddressSpace(type.getMemorySpace()))
      return emitOpError("workgroup buffers must be memrefs of static shape "
                         "and identity layout in the workgroup address space, "
                         "got ")
             << arg.getType() << rule(*this, 6);
  }
  return success();
}

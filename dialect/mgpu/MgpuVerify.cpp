// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers of configuration, memory and distribution. A verifier may see other
// operations before theirs ran, so it trusts only its own operands' types and
// counts.
#include "dialect/mgpu/MgpuDialect.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace mgpu::ir;

std::string mgpu::ir::rule(OperationName op, unsigned number) {
  return (" [" + op.stripDialect() + "_c" + Twine(number) + "]").str();
}

//===----------------------------------------------------------------------===//
// Configuration and devices
//===----------------------------------------------------------------------===//

static LogicalResult verifyDeviceIndex(GetDeviceOp op, uint32_t numDevices) {
  if (op->getNumOperands() != 1)
    return success();
  std::optional<int64_t> index = getConstantIndex(op.getIndex());
  if (!index || *index < static_cast<int64_t>(numDevices))
    return success();
  return op.emitOpError("device index ")
         << *index << " is out of range: the module's device_config has "
         << numDevices << (numDevices == 1 ? " device" : " devices")
         << rule(op, 1);
}

// Checks every get_device of the module: looking the config up from each of
// them would be quadratic in the size of the module.
LogicalResult DeviceConfigOp::verify() {
  auto module = cast<ModuleOp>((*this)->getParentOp());
  for (auto other : module.getOps<DeviceConfigOp>()) {
    if (other == *this)
      break;
    InFlightDiagnostic diag =
        emitOpError(
            "a module has only one device_config, this one follows another")
        << rule(*this, 6);
    diag.attachNote(other.getLoc()) << "the first is here";
    return diag;
  }
  uint32_t numDevices = getConfig().getNumDevices();
  WalkResult result = module->walk<WalkOrder::PreOrder>([&](Operation *op) {
    // A nested module is on its own.
    if (isa<ModuleOp>(op) && op != module)
      return WalkResult::skip();
    if (auto getDevice = dyn_cast<GetDeviceOp>(op))
      if (failed(verifyDeviceIndex(getDevice, numDevices)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult GetDeviceOp::verify() {
  std::optional<int64_t> index = getConstantIndex(getIndex());
  if (index && *index < hostDeviceIndex)
    return emitOpError("device index ")
           << *index << " is out of range: the least is -1, the host"
           << rule(*this, 2);
  return success();
}

LogicalResult StreamWaitOp::verify() {
  if (getWaitOnStreams().empty())
    return emitOpError("expected at least one stream to wait on")
           << rule(*this, 1);
  return success();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// An allocation has no operands for sizes, strides or an offset: rules `first`
/// and the one after it.
static LogicalResult verifyAllocated(Operation *op, MemRefType type,
                                     unsigned first) {
  if (!type.hasStaticShape())
    return op->emitOpError("result type must have a static shape, got ")
           << type << rule(op, first);
  if (!type.getLayout().isIdentity())
    return op->emitOpError("result type must have the identity layout, got ")
           << type << rule(op, first + 1);
  return success();
}

Value mgpu::ir::getAllocationDevice(Value buffer) {
  auto result = dyn_cast<OpResult>(buffer);
  if (!result)
    return {};
  Operation *op = result.getOwner();
  if (isa<AllocOp>(op) && op->getNumOperands() == 1)
    return op->getOperand(0);
  if (isa<ShardedAllocOp>(op) &&
      result.getResultNumber() < op->getNumOperands())
    return op->getOperand(result.getResultNumber());
  return {};
}

static LogicalResult verifyFreedOn(Operation *op, Value buffer, Value device,
                                   unsigned number) {
  Value owner = getAllocationDevice(buffer);
  if (!owner || owner == device || !isa<DeviceType>(owner.getType()))
    return success();
  std::optional<int64_t> ownerIndex = getConstantDeviceIndex(owner);
  std::optional<int64_t> index = getConstantDeviceIndex(device);
  if (!ownerIndex || !index || *ownerIndex == *index)
    return success();
  InFlightDiagnostic diag = op->emitOpError("frees on device ")
                            << *index << " a buffer allocated on device "
                            << *ownerIndex << rule(op, number);
  diag.attachNote(buffer.getLoc()) << "allocated here";
  return diag;
}

LogicalResult AllocOp::verify() {
  return verifyAllocated(*this, cast<MemRefType>(getPtr().getType()), 1);
}

LogicalResult OutputOp::verify() {
  const bool isText = getKind() == OutputKind::Text;
  if (isText == bool(getSource()))
    return emitOpError(isText ? "of kind text takes no source"
                              : "needs a source")
           << rule(*this, 1);
  auto isOne = [&](Type element) {
    auto type = dyn_cast<MemRefType>(getSource().getType());
    return type && type.getElementType() == element && type.hasStaticShape() &&
           type.getNumElements() == 1;
  };
  Builder b(getContext());
  if (getKind() == OutputKind::Check && !isOne(b.getI1Type()))
    return emitOpError("of kind check needs a memref of one i1, got ")
           << getSource().getType() << rule(*this, 2);
  if (getKind() == OutputKind::Flops && !isOne(b.getF64Type()))
    return emitOpError("of kind flops needs a memref of one f64, got ")
           << getSource().getType() << rule(*this, 3);
  return success();
}

LogicalResult FreeOp::verify() {
  return verifyFreedOn(*this, getPtr(), getDevice(), 1);
}

static LogicalResult verifySameElementType(Operation *op, MemRefType source,
                                           MemRefType destination,
                                           unsigned number) {
  if (source.getElementType() == destination.getElementType())
    return success();
  return op->emitOpError("source has element type ")
         << source.getElementType() << ", but destination has "
         << destination.getElementType() << rule(op, number);
}

/// The number of elements of a static shape, unless it overflows.
static std::optional<int64_t> countElements(MemRefType type) {
  int64_t count = 1;
  for (int64_t size : type.getShape())
    if (llvm::MulOverflow(count, size, count))
      return std::nullopt;
  return count;
}

LogicalResult MemcpyOp::verify() {
  auto dst = cast<MemRefType>(getDst().getType());
  auto src = cast<MemRefType>(getSrc().getType());
  if (failed(verifySameElementType(*this, src, dst, 1)))
    return failure();
  if (!dst.hasStaticShape() || !src.hasStaticShape())
    return success();
  std::optional<int64_t> dstCount = countElements(dst);
  std::optional<int64_t> srcCount = countElements(src);
  if (!dstCount || !srcCount)
    return emitOpError("the number of elements overflows, got ")
           << src << " and " << dst << rule(*this, 2);
  if (*dstCount != *srcCount)
    return emitOpError("source has ")
           << *srcCount << " elements, but destination has " << *dstCount
           << rule(*this, 3);
  return success();
}

//===----------------------------------------------------------------------===//
// Slices along an axis. The operations that share one of these checks give it
// the same number: 1 to 3 for the counts, 4 for the axis, 5 for element types,
// 6 where sizes have to add up or divide, 7 and 8 for each slice.
//===----------------------------------------------------------------------===//

static LogicalResult verifyAxis(Operation *op, int64_t axis, int64_t rank) {
  if (axis >= 0 && axis < rank)
    return success();
  return op->emitOpError("axis ")
         << axis << " is out of range for a buffer of rank " << rank
         << rule(op, 4);
}

static bool differ(int64_t a, int64_t b) {
  return a != b && !ShapedType::isDynamic(a) && !ShapedType::isDynamic(b);
}

/// Checks that `slice`, number `index`, has the whole's dimensions except
/// along `axis`, where it has `expected` (or anything, where that is dynamic).
static LogicalResult verifySlice(Operation *op, ArrayRef<int64_t> whole,
                                 MemRefType slice, size_t index, int64_t axis,
                                 int64_t expected) {
  if (slice.getRank() != static_cast<int64_t>(whole.size()))
    return op->emitOpError("slice ")
           << index << " has rank " << slice.getRank() << ", but the whole has "
           << whole.size() << rule(op, 7);
  for (int64_t dim = 0; dim < slice.getRank(); ++dim) {
    int64_t size = dim == axis ? expected : whole[dim];
    if (differ(slice.getDimSize(dim), size))
      return op->emitOpError("slice ")
             << index << " has size " << slice.getDimSize(dim)
             << " in dimension " << dim << ", expected " << size << rule(op, 8);
  }
  return success();
}

/// The sum of the slices' sizes along `axis`, or dynamic, or the largest number
/// where it overflows. The slices' ranks were checked.
static int64_t sumAlong(ValueRange slices, int64_t axis) {
  int64_t sum = 0;
  for (Value slice : slices) {
    int64_t size = cast<MemRefType>(slice.getType()).getDimSize(axis);
    if (ShapedType::isDynamic(size))
      return ShapedType::kDynamic;
    if (llvm::AddOverflow(sum, size, sum))
      return std::numeric_limits<int64_t>::max();
  }
  return sum;
}

static LogicalResult verifyCounts(Operation *op, size_t buffers, size_t devices,
                                  size_t streams) {
  if (devices == 0)
    return op->emitOpError("expected at least one device") << rule(op, 1);
  if (buffers != devices)
    return op->emitOpError("expected as many buffers as devices, got ")
           << buffers << " and " << devices << rule(op, 2);
  if (streams != 0 && streams != devices)
    return op->emitOpError("expected no stream or one for each device, got ")
           << streams << " for " << devices << " devices" << rule(op, 3);
  return success();
}

/// Checks what scatter, uneven_scatter and gather share: counts, element types,
/// axis.
static LogicalResult verifyDistribution(Operation *op, MemRefType whole,
                                        ValueRange slices, ValueRange devices,
                                        ValueRange streams, int64_t axis,
                                        bool slicesAreSources) {
  if (failed(verifyCounts(op, slices.size(), devices.size(), streams.size())) ||
      failed(verifyAxis(op, axis, whole.getRank())))
    return failure();
  for (Value slice : slices) {
    auto type = cast<MemRefType>(slice.getType());
    if (failed(verifySameElementType(op, slicesAreSources ? type : whole,
                                     slicesAreSources ? whole : type, 5)))
      return failure();
  }
  return success();
}

static LogicalResult verifyDivisible(Operation *op, int64_t size, int64_t axis,
                                     size_t devices) {
  if (ShapedType::isDynamic(size) || size % static_cast<int64_t>(devices) == 0)
    return success();
  return op->emitOpError("size ") << size << " of dimension " << axis
                                  << " is not divisible by the number of "
                                     "devices, "
                                  << devices << rule(op, 6);
}

LogicalResult ScatterOp::verify() {
  auto src = cast<MemRefType>(getSrc().getType());
  int64_t axis = getAxis();
  if (failed(verifyDistribution(*this, src, getDstBufs(), getDevices(),
                                getStreams(), axis,
                                /*slicesAreSources=*/false)))
    return failure();
  int64_t size = src.getDimSize(axis);
  size_t count = getDevices().size();
  if (failed(verifyDivisible(*this, size, axis, count)))
    return failure();
  int64_t expected =
      ShapedType::isDynamic(size) ? size : size / static_cast<int64_t>(count);
  for (auto [index, type] : llvm::enumerate(getDstBufs().getTypes()))
    if (failed(verifySlice(*this, src.getShape(), cast<MemRefType>(type), index,
                           axis, expected)))
      return failure();
  return success();
}

LogicalResult UnevenScatterOp::verify() {
  auto src = cast<MemRefType>(getSrc().getType());
  int64_t axis = getAxis();
  if (failed(verifyDistribution(*this, src, getDstBufs(), getDevices(),
                                getStreams(), axis,
                                /*slicesAreSources=*/false)))
    return failure();
  ArrayRef<int64_t> sizes = getSliceSizes();
  if (sizes.size() != getDevices().size())
    return emitOpError("expected one slice size for each device, got ")
           << sizes.size() << " for " << getDevices().size() << " devices"
           << rule(*this, 6);
  // Sizes of hostile input can be any 64-bit number: compare before adding.
  int64_t sum = 0;
  for (auto [index, size] : llvm::enumerate(sizes)) {
    if (size < 0)
      return emitOpError("slice size ")
             << index << " must not be negative, got " << size
             << rule(*this, 9);
    if (llvm::AddOverflow(sum, size, sum))
      return emitOpError("the sum of the slice sizes overflows")
             << rule(*this, 10);
  }
  if (differ(sum, src.getDimSize(axis)))
    return emitOpError("slice sizes add up to ")
           << sum << ", but dimension " << axis << " of the source has size "
           << src.getDimSize(axis) << rule(*this, 11);
  for (auto [index, type] : llvm::enumerate(getDstBufs().getTypes()))
    if (failed(verifySlice(*this, src.getShape(), cast<MemRefType>(type), index,
                           axis, sizes[index])))
      return failure();
  return success();
}

LogicalResult GatherOp::verify() {
  auto dst = cast<MemRefType>(getDst().getType());
  int64_t axis = getAxis();
  if (failed(verifyDistribution(*this, dst, getSrcBufs(), getDevices(),
                                getStreams(), axis, /*slicesAreSources=*/true)))
    return failure();
  for (auto [index, type] : llvm::enumerate(getSrcBufs().getTypes()))
    if (failed(verifySlice(*this, dst.getShape(), cast<MemRefType>(type), index,
                           axis, ShapedType::kDynamic)))
      return failure();
  int64_t sum = sumAlong(getSrcBufs(), axis);
  if (differ(sum, dst.getDimSize(axis)))
    return emitOpError("slices add up to ")
           << sum << " along dimension " << axis
           << ", but the destination has size " << dst.getDimSize(axis)
           << rule(*this, 6);
  return success();
}

LogicalResult ReplicateOp::verify() {
  auto src = cast<MemRefType>(getSrc().getType());
  if (failed(verifyCounts(*this, getDstBufs().size(), getDevices().size(),
                          getStreams().size())))
    return failure();
  for (auto [index, type] : llvm::enumerate(getDstBufs().getTypes())) {
    auto dst = cast<MemRefType>(type);
    if (failed(verifySameElementType(*this, src, dst, 4)))
      return failure();
    if (failed(verifyCompatibleShape(src.getShape(), dst.getShape())))
      return emitOpError("destination ")
             << index << " must have the shape of the source, " << src
             << ", got " << dst << rule(*this, 5);
  }
  return success();
}

LogicalResult ShardedAllocOp::verify() {
  if (failed(verifyCounts(*this, getShards().size(), getDevices().size(), 0)))
    return failure();
  ArrayRef<int64_t> logical = getLogicalShape();
  for (auto [dim, size] : llvm::enumerate(logical))
    if (size < 0)
      return emitOpError("dimension ")
             << dim << " of the logical shape must not be negative, got "
             << size << rule(*this, 3);
  int64_t axis = getShardAxis();
  ShardKind kind = getShardKind();
  if (failed(verifyAxis(*this, axis, logical.size())))
    return failure();
  int64_t count = getDevices().size();
  int64_t expected = ShapedType::kDynamic;
  if (kind == ShardKind::Replicate)
    expected = logical[axis];
  if (kind == ShardKind::Uniform) {
    if (failed(verifyDivisible(*this, logical[axis], axis, count)))
      return failure();
    expected = logical[axis] / count;
  }
  Type elementType =
      cast<MemRefType>(getShards().front().getType()).getElementType();
  for (auto [index, result] : llvm::enumerate(getShards().getTypes())) {
    auto shard = cast<MemRefType>(result);
    if (failed(verifyAllocated(*this, shard, 10)))
      return failure();
    if (shard.getElementType() != elementType)
      return emitOpError("shards 0 and ")
             << index << " have different element types, " << elementType
             << " and " << shard.getElementType() << rule(*this, 5);
    if (failed(verifySlice(*this, logical, shard, index, axis, expected)))
      return failure();
  }
  int64_t sum = sumAlong(getShards(), axis);
  if (kind == ShardKind::Uneven && sum != logical[axis])
    return emitOpError("shards add up to ")
           << sum << " along dimension " << axis
           << ", but the logical shape has size " << logical[axis]
           << rule(*this, 9);
  return success();
}

LogicalResult ShardedFreeOp::verify() {
  if (failed(verifyCounts(*this, getShards().size(), getDevices().size(), 0)))
    return failure();
  for (auto [shard, device] : llvm::zip(getShards(), getDevices()))
    if (failed(verifyFreedOn(*this, shard, device, 3)))
      return failure();
  return success();
}

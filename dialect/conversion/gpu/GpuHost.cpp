// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Devices, tokens and memory of the gpu dialect's host code.
#include "dialect/conversion/gpu/GpuHost.h"

#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/HostCode.h"
#include "dialect/mgpu/MgpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

namespace mgpu::conversion {

using namespace mlir;

Value deviceHandle(func::FuncOp function, int64_t index) {
  Block &front = function.getBody().front();
  for (auto device : front.getOps<ir::GetDeviceOp>())
    if (ir::hasMark(device, ir::Mark::Head) &&
        ir::getConstantDeviceIndex(device) == index)
      return device;
  OpBuilder b = OpBuilder::atBlockBegin(&front);
  Value number = arith::ConstantIndexOp::create(b, function.getLoc(), index);
  auto device = ir::GetDeviceOp::create(
      b, function.getLoc(), ir::DeviceType::get(b.getContext()), number);
  ir::setMark(device, ir::Mark::Head);
  return device;
}

FailureOr<Value> defaultDeviceAt(Operation *op, const DefaultDevice &now) {
  if (now.isUnclear) {
    ir::emitUnsupported(op)
        << "runs on a default device that depends on loops, branches or calls "
           "before it; choose it here with gpu.set_default_device";
    return failure();
  }
  if (now.handle)
    return now.handle;
  return deviceHandle(op->getParentOfType<func::FuncOp>(), 0);
}

Value streamOf(OpBuilder &b, gpu::AsyncOpInterface op, Value device) {
  Location loc = op->getLoc();
  ValueRange awaited = op.getAsyncDependencies();
  Value token = op.getAsyncToken();
  if (!token) {
    for (Value each : awaited)
      ir::SyncStreamOp::create(b, loc, each);
    return {};
  }
  Value stream = ir::CreateStreamOp::create(
      b, loc, ir::StreamType::get(b.getContext()), device);
  if (!awaited.empty())
    ir::StreamWaitOp::create(b, loc, stream, awaited);
  token.replaceAllUsesWith(stream);
  return stream;
}

namespace {

/// The device that owns a memref, as far as the text shows; else the host.
Value ownerOf(Operation *op, Value memref) {
  if (Value device = ir::deviceOf(memref))
    return device;
  return deviceHandle(op->getParentOfType<func::FuncOp>(), ir::hostDeviceIndex);
}

LogicalResult convert(gpu::AllocOp op, Value device) {
  OpBuilder b(op);
  MemRefType type = op.getType();
  SmallVector<int64_t> shape(type.getShape());
  auto sizes = op.getDynamicSizes().begin();
  for (int64_t &size : shape)
    if (ShapedType::isDynamic(size)) {
      std::optional<int64_t> known = knownSize(*sizes++);
      if (!known || *known < 0)
        return ir::emitUnsupported(op)
               << "allocates memory of a size that is not a constant";
      size = *known;
    }
  if (!type.getLayout().isIdentity() || !op.getSymbolOperands().empty())
    return ir::emitUnsupported(op)
           << "allocates memory of another layout than the default";
  streamOf(b, op, device);
  auto wanted =
      MemRefType::get(shape, type.getElementType(), MemRefLayoutAttrInterface(),
                      type.getMemorySpace());
  auto made = ir::AllocOp::create(b, op.getLoc(), wanted, device);
  if (!op.getHostShared())
    ir::setMark(made, ir::Mark::DeviceOnly);
  replaceMemory(op.getMemref(), made.getPtr());
  return success();
}

/// An operation behind `op` that uses the memory, or a view of it; null where
/// there is none.
Operation *useBehind(Operation *op, Value memref) {
  SmallVector<Value> todo{ir::rootOf(memref)};
  while (!todo.empty())
    for (Operation *user : todo.pop_back_val().getUsers()) {
      if (user->getNumResults() == 1 && ir::viewSourceOf(user->getResult(0))) {
        todo.append(user->result_begin(), user->result_end());
        continue;
      }
      Operation *there = op->getBlock()->findAncestorOpInBlock(*user);
      if (there && op->isBeforeInBlock(there))
        return user;
    }
  return nullptr;
}

/// Memory that is freed in the order of tokens lives to the program's end: only
/// the host frees. Nothing that follows here may use it.
LogicalResult convert(gpu::DeallocOp op, Value device) {
  if (Operation *user = useBehind(op, op.getMemref())) {
    InFlightDiagnostic diagnostic = ir::emitProgramError(user)
                                    << "uses memory that is freed before it";
    diagnostic.attachNote(op.getLoc()) << "freed here";
    return diagnostic;
  }
  OpBuilder b(op);
  if (streamOf(b, op, device))
    return success();
  Value owner = ownerOf(op, op.getMemref());
  ir::FreeOp::create(b, op.getLoc(), op.getMemref(), owner);
  return success();
}

void convert(gpu::MemcpyOp op, Value device) {
  OpBuilder b(op);
  Value stream = streamOf(b, op, device);
  ir::MemcpyOp::create(b, op.getLoc(), op.getDst(), op.getSrc(),
                       ownerOf(op, op.getDst()), ownerOf(op, op.getSrc()),
                       stream);
}

/// A launch with a thread for each element, which sets it.
LogicalResult convert(gpu::MemsetOp op, Value device) {
  auto type = cast<MemRefType>(op.getDst().getType());
  if (!type.hasStaticShape())
    return ir::emitUnsupported(op) << "sets memory of a dynamic shape";
  OpBuilder b(op);
  Location loc = op.getLoc();
  if (Value owner = ir::deviceOf(op.getDst()))
    device = owner;
  Value stream = streamOf(b, op, device);
  const int64_t count = type.getNumElements(), perBlock = 256;
  if (count == 0)
    return success();
  Value memory = op.getDst();
  if (type.getRank() > 1 && type.getLayout().isIdentity()) {
    ReassociationIndices all(size_t(type.getRank()));
    std::iota(all.begin(), all.end(), 0);
    memory = memref::CollapseShapeOp::create(b, loc, memory, SmallVector{all});
    type = cast<MemRefType>(memory.getType());
  }
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value block = constant(std::min(count, perBlock));
  Value grid = constant((count + perBlock - 1) / perBlock);
  auto launch = ir::LaunchOp::create(b, loc, device, grid, block, stream);
  launch->setAttr("mgpu.name", b.getStringAttr("memset"));
  b.setInsertionPoint(launch.getBody().front().getTerminator());
  Value rest = gpu::GlobalIdOp::create(b, loc, gpu::Dimension::x);
  if (count > perBlock && count % perBlock != 0) {
    Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                         rest, constant(count));
    auto guard = scf::IfOp::create(b, loc, inside, /*withElseRegion=*/false);
    b.setInsertionPointToStart(guard.thenBlock());
  }
  SmallVector<Value> indices(size_t(type.getRank()));
  for (int64_t dim = type.getRank(); dim-- > 0;) {
    indices[size_t(dim)] = rest;
    if (dim == 0)
      break;
    Value size = constant(type.getDimSize(dim));
    indices[size_t(dim)] = arith::RemUIOp::create(b, loc, rest, size);
    rest = arith::DivUIOp::create(b, loc, rest, size);
  }
  memref::StoreOp::create(b, loc, op.getValue(), memory, indices);
  return success();
}

} // namespace

bool isMemoryOp(Operation *op) {
  return isa<gpu::AllocOp, gpu::DeallocOp, gpu::MemcpyOp, gpu::MemsetOp,
             gpu::WaitOp, gpu::HostRegisterOp, gpu::HostUnregisterOp>(op);
}

LogicalResult convertMemoryOp(Operation *op, Value device) {
  LogicalResult result =
      llvm::TypeSwitch<Operation *, LogicalResult>(op)
          .Case<gpu::AllocOp, gpu::DeallocOp, gpu::MemsetOp>(
              [&](auto each) { return convert(each, device); })
          .Case([&](gpu::MemcpyOp copy) {
            convert(copy, device);
            return success();
          })
          .Case([&](gpu::WaitOp wait) {
            OpBuilder b(wait);
            streamOf(b, wait, device);
            return success();
          })
          .Default(success()); // registered memory is placed as all other
  if (succeeded(result))
    op->erase();
  return result;
}

static bool takesMemref(Operation *op) {
  return llvm::any_of(op->getOperandTypes(), llvm::IsaPred<BaseMemRefType>);
}

bool touchesMemory(Operation *op) {
  if (isa<memref::LoadOp, memref::StoreOp, memref::AtomicRMWOp,
          memref::GenericAtomicRMWOp>(op))
    return true;
  return isa_and_nonnull<vector::VectorDialect>(op->getDialect()) &&
         takesMemref(op) && !isPure(op);
}

bool mayWrite(Operation *op, Value memref) {
  if (isPure(op) || isa<memref::DeallocOp, ir::OutputOp, func::ReturnOp>(op))
    return false;
  if (auto copy = dyn_cast<ir::MemcpyOp>(op))
    return copy.getDst() == memref;
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  if (!effects)
    return true;
  SmallVector<MemoryEffects::EffectInstance> found;
  effects.getEffects(found);
  return llvm::any_of(found, [&](const MemoryEffects::EffectInstance &each) {
    return isa<MemoryEffects::Write>(each.getEffect()) &&
           (!each.getValue() || each.getValue() == memref);
  });
}

/// The size that a memref, which is made here or a cast, has along a dimension.
static std::optional<int64_t> knownDim(Value memref, int64_t index, int depth) {
  while (true) {
    auto type = dyn_cast<MemRefType>(memref.getType());
    const bool isRanked = type && index >= 0 && index < type.getRank();
    if (isRanked && !type.isDynamicDim(unsigned(index)))
      return type.getDimSize(unsigned(index));
    Operation *op = memref.getDefiningOp();
    if (isRanked &&
        isa_and_nonnull<memref::AllocOp, memref::AllocaOp, gpu::AllocOp>(op)) {
      ValueRange sizes = op->getOperands(); // tokens come first
      if (auto alloc = dyn_cast<gpu::AllocOp>(op))
        sizes = alloc.getDynamicSizes();
      return knownSize(sizes[type.getDynamicDimIndex(unsigned(index))], depth);
    }
    auto cast = dyn_cast_or_null<memref::CastOp>(op);
    if (!cast)
      return std::nullopt;
    memref = cast.getSource();
  }
}

std::optional<int64_t> knownSize(Value size, int depth) {
  if (std::optional<int64_t> constant = getConstantIntValue(size))
    return constant;
  Operation *op = size.getDefiningOp();
  if (!op || depth == 0)
    return std::nullopt;
  if (auto dim = dyn_cast<memref::DimOp>(op)) {
    std::optional<int64_t> index = knownSize(dim.getIndex(), depth - 1);
    return index ? knownDim(dim.getSource(), *index, depth - 1) : std::nullopt;
  }
  if (!isPure(op) || op->getNumRegions() > 0 || op->getNumResults() != 1)
    return std::nullopt;
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands()) {
    std::optional<int64_t> known = knownSize(operand, depth - 1);
    if (!known || !operand.getType().isIntOrIndex())
      return std::nullopt;
    operands.push_back(IntegerAttr::get(operand.getType(), *known));
  }
  SmallVector<OpFoldResult> results;
  if (failed(op->fold(operands, results)) || results.size() != 1)
    return std::nullopt;
  return getConstantIntValue(results[0]);
}

void replaceMemory(Value memory, Value made) {
  if (made.getType() != memory.getType()) {
    memory.replaceUsesWithIf(made, [](OpOperand &use) {
      return isa<linalg::LinalgOp>(use.getOwner());
    });
    OpBuilder b(made.getContext());
    b.setInsertionPointAfterValue(made);
    made = memref::CastOp::create(b, made.getLoc(), memory.getType(), made);
  }
  memory.replaceAllUsesWith(made);
}

/// Adds the values that may flow into a memref that is not a view.
static void addSources(Value memref, SmallVectorImpl<Value> &todo) {
  if (auto select = memref.getDefiningOp<arith::SelectOp>()) {
    todo.append({select.getTrueValue(), select.getFalseValue()});
    return;
  }
  Operation *op = memref.getDefiningOp();
  if (auto argument = dyn_cast<BlockArgument>(memref)) {
    op = argument.getOwner()->getParentOp();
    for (Block *from : argument.getOwner()->getPredecessors())
      if (auto branch = dyn_cast<BranchOpInterface>(from->getTerminator()))
        for (unsigned k = 0; k < from->getTerminator()->getNumSuccessors(); ++k)
          if (from->getTerminator()->getSuccessor(k) == argument.getOwner())
            if (Value value =
                    branch.getSuccessorOperands(k)[argument.getArgNumber()])
              todo.push_back(value);
  }
  if (!op || !isa<RegionBranchOpInterface>(op))
    return;
  // All memrefs that enter or leave the regions: more than flow here at most.
  for (Value operand : op->getOperands())
    if (isa<BaseMemRefType>(operand.getType()))
      todo.push_back(operand);
  for (Region &region : op->getRegions())
    for (Block &block : region)
      if (block.mightHaveTerminator())
        for (Value operand : block.getTerminator()->getOperands())
          if (isa<BaseMemRefType>(operand.getType()))
            todo.push_back(operand);
}

llvm::SetVector<Value> rootsOf(Value memref) {
  llvm::SetVector<Value> seen, roots;
  SmallVector<Value> todo{memref};
  while (!todo.empty()) {
    Value each = ir::rootOf(todo.pop_back_val());
    if (!seen.insert(each))
      continue;
    const size_t before = todo.size();
    addSources(each, todo);
    if (todo.size() == before)
      roots.insert(each);
  }
  return roots;
}

} // namespace mgpu::conversion

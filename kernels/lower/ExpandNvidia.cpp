// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/lower/ExpandNvidia.h"

#include "dialect/mgpu/Instructions.h"
#include "kernels/lower/ExpandProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace mgpu::kernels {

namespace {

Value constant(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

/// The value that lane `lane` has.
Value fromLane(OpBuilder &b, Location loc, Value value, Value lane) {
  auto narrow = [&](Value index) -> Value {
    return arith::IndexCastOp::create(b, loc, b.getI32Type(), index);
  };
  Value width = arith::ConstantIntOp::create(b, loc, 32, 32);
  Value shuffled = gpu::ShuffleOp::create(b, loc, narrow(value), narrow(lane),
                                          width, gpu::ShuffleMode::IDX)
                       .getShuffleResult();
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), shuffled);
}

/// Lane 8 t + r points to row r of tile t. Each lane gets two neighbours of row
/// lane / 4, or, transposed, of column lane / 4.
bool expand(nvgpu::LdMatrixOp op) {
  auto type = cast<VectorType>(op.getRes().getType());
  if (type.getElementTypeBitWidth() != 16 || type.getRank() != 2 ||
      type.getDimSize(1) != 2)
    return false;
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value lane = gpu::LaneIdOp::create(b, loc, nullptr);
  Value four = constant(b, loc, 4);
  Value group = arith::DivUIOp::create(b, loc, lane, four);
  Value pair = arith::MulIOp::create(
      b, loc, arith::RemUIOp::create(b, loc, lane, four), constant(b, loc, 2));
  SmallVector<Value> elements;
  for (int64_t k = 0; k < type.getNumElements(); ++k) {
    Value within = arith::AddIOp::create(b, loc, pair, constant(b, loc, k % 2));
    Value row = op.getTranspose() ? within : group;
    Value column = op.getTranspose() ? group : within;
    Value source =
        arith::AddIOp::create(b, loc, row, constant(b, loc, k / 2 * 8));
    SmallVector<Value> at;
    for (Value index : op.getIndices())
      at.push_back(fromLane(b, loc, index, source));
    at.back() = arith::AddIOp::create(b, loc, at.back(), column);
    elements.push_back(
        memref::LoadOp::create(b, loc, op.getSrcMemref(), at).getResult());
  }
  op.getRes().replaceAllUsesWith(
      vector::FromElementsOp::create(b, loc, type, elements).getResult());
  op.erase();
  return true;
}

/// Done when it is asked for: what waits for it finds it done.
void expand(nvgpu::DeviceAsyncCopyOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto memory = cast<MemRefType>(op.getSrc().getType());
  auto type = VectorType::get({op.getDstElements().getSExtValue()},
                              memory.getElementType());
  Value value;
  if (op.getSrcElements()) {
    Value mask = vector::CreateMaskOp::create(
        b, loc, VectorType::get(type.getShape(), b.getI1Type()),
        op.getSrcElements());
    Value zeros = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
    value = vector::MaskedLoadOp::create(b, loc, type, op.getSrc(),
                                         op.getSrcIndices(), mask, zeros);
  } else {
    value =
        vector::LoadOp::create(b, loc, type, op.getSrc(), op.getSrcIndices());
  }
  vector::StoreOp::create(b, loc, value, op.getDst(), op.getDstIndices());
}

/// A shuffle of whole subgroups, or within segments of one lane, where each
/// lane keeps its value. Others stay.
void expand(NVVM::ShflOp op) {
  std::optional<int64_t> limits = getConstantIntValue(op.getMaskAndClamp());
  if (!limits || op.getReturnValueAndIsValid())
    return;
  const int64_t segment = *limits >> 8 & 31, clamp = *limits & 31;
  const bool isUp = op.getKind() == NVVM::ShflKind::up;
  OpBuilder b(op);
  Value result = op.getVal();
  if (segment == 0 && clamp == (isUp ? 0 : 31)) {
    const gpu::ShuffleMode mode =
        isUp                                   ? gpu::ShuffleMode::UP
        : op.getKind() == NVVM::ShflKind::down ? gpu::ShuffleMode::DOWN
        : op.getKind() == NVVM::ShflKind::bfly ? gpu::ShuffleMode::XOR
                                               : gpu::ShuffleMode::IDX;
    Value width = arith::ConstantIntOp::create(b, op.getLoc(), 32, 32);
    result = gpu::ShuffleOp::create(b, op.getLoc(), result, op.getOffset(),
                                    width, mode)
                 .getShuffleResult();
  } else if (segment != 31) {
    return;
  }
  op.getRes().replaceAllUsesWith(result);
  op.erase();
}

/// All lanes of a subgroup are there, so the first one is elected.
void expand(NVVM::ElectSyncOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value lane = gpu::LaneIdOp::create(b, loc, nullptr);
  Value is = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane,
                                   constant(b, loc, 0));
  op.getPred().replaceAllUsesWith(is);
  op.erase();
}

/// 1 / x, which is what an approximation may be.
void expand(nvgpu::RcpOp op) {
  OpBuilder b(op);
  auto type = cast<VectorType>(op.getOut().getType());
  Value one = arith::ConstantOp::create(
      b, op.getLoc(),
      DenseElementsAttr::get(type, b.getF32FloatAttr(1).getValue()));
  op.getOut().replaceAllUsesWith(
      arith::DivFOp::create(b, op.getLoc(), one, op.getIn()).getResult());
  op.erase();
}

/// An id or size of PTX's registers, which have 32 bits.
template <typename Asked, typename... Axis>
void answer(Operation *op, Axis... axis) {
  OpBuilder b(op);
  Value index = Asked::create(b, op->getLoc(), axis...);
  op->getResult(0).replaceAllUsesWith(
      arith::IndexCastOp::create(b, op->getLoc(), b.getI32Type(), index)
          .getResult());
  op->erase();
}

void expandRegister(Operation *op) {
  using gpu::Dimension;
  llvm::TypeSwitch<Operation *>(op)
      .Case(
          [&](NVVM::ThreadIdXOp) { answer<gpu::ThreadIdOp>(op, Dimension::x); })
      .Case(
          [&](NVVM::ThreadIdYOp) { answer<gpu::ThreadIdOp>(op, Dimension::y); })
      .Case(
          [&](NVVM::ThreadIdZOp) { answer<gpu::ThreadIdOp>(op, Dimension::z); })
      .Case([&](NVVM::BlockIdXOp) { answer<gpu::BlockIdOp>(op, Dimension::x); })
      .Case([&](NVVM::BlockIdYOp) { answer<gpu::BlockIdOp>(op, Dimension::y); })
      .Case([&](NVVM::BlockIdZOp) { answer<gpu::BlockIdOp>(op, Dimension::z); })
      .Case(
          [&](NVVM::BlockDimXOp) { answer<gpu::BlockDimOp>(op, Dimension::x); })
      .Case(
          [&](NVVM::BlockDimYOp) { answer<gpu::BlockDimOp>(op, Dimension::y); })
      .Case(
          [&](NVVM::BlockDimZOp) { answer<gpu::BlockDimOp>(op, Dimension::z); })
      .Case([&](NVVM::GridDimXOp) { answer<gpu::GridDimOp>(op, Dimension::x); })
      .Case([&](NVVM::GridDimYOp) { answer<gpu::GridDimOp>(op, Dimension::y); })
      .Case([&](NVVM::GridDimZOp) { answer<gpu::GridDimOp>(op, Dimension::z); })
      .Case([&](NVVM::LaneIdOp) { answer<gpu::LaneIdOp>(op, nullptr); })
      .Case([&](NVVM::WarpSizeOp) { answer<gpu::SubgroupSizeOp>(op, nullptr); })
      .Case<NVVM::ShflOp, NVVM::ElectSyncOp>([](auto each) { expand(each); })
      .Case<NVVM::BarrierOp, NVVM::Barrier0Op>([&](Operation *) {
        if (op->getNumOperands() > 0 || op->getNumResults() > 0)
          return;
        OpBuilder b(op);
        gpu::BarrierOp::create(b, op->getLoc());
        op->erase();
      });
}

/// Whether elements beside each other in a row lie beside each other.
bool hasRows(Value memory) {
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  auto type = cast<MemRefType>(memory.getType());
  return succeeded(type.getStridesAndOffset(strides, offset)) &&
         !strides.empty() && strides.back() == 1;
}

/// cp.async copies 4, 8 or 16 bytes to shared memory from elsewhere.
bool isInstruction(nvgpu::DeviceAsyncCopyOp op) {
  auto to = cast<MemRefType>(op.getDst().getType()),
       from = cast<MemRefType>(op.getSrc().getType());
  const Type element = to.getElementType();
  const uint64_t bits =
      element.isIntOrFloat()
          ? op.getDstElements().getZExtValue() * element.getIntOrFloatBitWidth()
          : 0;
  return (bits == 32 || bits == 64 || bits == 128) &&
         element.getIntOrFloatBitWidth() % 8 == 0 &&
         gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(to) &&
         !gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(from) &&
         hasRows(op.getDst()) && hasRows(op.getSrc());
}

bool isInstruction(nvgpu::LdMatrixOp op) {
  auto memory = cast<MemRefType>(op.getSrcMemref().getType());
  const uint32_t tiles = op.getNumTiles();
  return cast<VectorType>(op.getRes().getType()).getElementTypeBitWidth() ==
             16 &&
         memory.getElementTypeBitWidth() == 16 &&
         gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(memory) &&
         hasRows(op.getSrcMemref()) && (tiles == 1 || tiles == 2 || tiles == 4);
}

/// Whether all copies are instructions, and their tokens go to groups and waits
/// alone.
bool keepsCopies(ArrayRef<Operation *> tokens) {
  return llvm::all_of(tokens, [](Operation *op) {
    if (auto copy = dyn_cast<nvgpu::DeviceAsyncCopyOp>(op);
        copy && !isInstruction(copy))
      return false;
    return llvm::all_of(op->getUsers(),
                        llvm::IsaPred<nvgpu::DeviceAsyncCreateGroupOp,
                                      nvgpu::DeviceAsyncWaitOp>);
  });
}

} // namespace

void expandNvidia(ModuleOp module, NvidiaOps ops) {
  SmallVector<Operation *> found, tokens, instructions;
  module.walk([&](Operation *op) {
    if (ir::isInstruction(op))
      instructions.push_back(op);
    else if (isa<nvgpu::DeviceAsyncCopyOp, nvgpu::DeviceAsyncCreateGroupOp,
                 nvgpu::DeviceAsyncWaitOp>(op))
      tokens.push_back(op);
    else if (isa<NVVM::NVVMDialect, nvgpu::NVGPUDialect>(op->getDialect()))
      found.push_back(op);
  });
  if (ops == NvidiaOps::Expanded) // what they mean stands behind them
    for (Operation *op : llvm::reverse(instructions))
      op->erase();
  if (ops == NvidiaOps::Kept && keepsCopies(tokens))
    tokens.clear();
  for (Operation *op : tokens)
    if (auto copy = dyn_cast<nvgpu::DeviceAsyncCopyOp>(op))
      expand(copy);
  // Tokens that loops carry stay, and are refused.
  for (Operation *op : llvm::reverse(tokens))
    if (op->use_empty())
      op->erase();
  for (Operation *op : found) {
    if (auto product = dyn_cast<nvgpu::MmaSyncOp>(op))
      expandProduct(product);
    else if (auto sparse = dyn_cast<nvgpu::MmaSparseSyncOp>(op))
      expandProduct(sparse);
    else if (auto load = dyn_cast<nvgpu::LdMatrixOp>(op)) {
      if (ops == NvidiaOps::Expanded || !isInstruction(load))
        expand(load);
    } else if (auto inverse = dyn_cast<nvgpu::RcpOp>(op))
      expand(inverse);
    else
      expandRegister(op);
  }
}

} // namespace mgpu::kernels

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/host/Atomics.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace mgpu::kernels {

namespace {

/// Whether memref.atomic_rmw becomes LLVM's atomicrmw with the same meaning.
bool isOneInstruction(memref::AtomicRMWOp op) {
  Type type = op.getValue().getType();
  switch (op.getKind()) {
  case arith::AtomicRMWKind::addf:
    return type.isF32() || type.isF64();
  case arith::AtomicRMWKind::addi:
  case arith::AtomicRMWKind::andi:
  case arith::AtomicRMWKind::assign:
  case arith::AtomicRMWKind::maxs:
  case arith::AtomicRMWKind::maxu:
  case arith::AtomicRMWKind::mins:
  case arith::AtomicRMWKind::minu:
  case arith::AtomicRMWKind::ori:
  case arith::AtomicRMWKind::xori:
    return type.isInteger(8) || type.isInteger(16) || type.isInteger(32) ||
           type.isInteger(64);
  default:
    return false;
  }
}

void makeGeneric(memref::AtomicRMWOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto generic = memref::GenericAtomicRMWOp::create(b, loc, op.getMemref(),
                                                    op.getIndices());
  b.setInsertionPointToEnd(generic.getBody());
  Value result =
      op.getKind() == arith::AtomicRMWKind::assign
          ? op.getValue()
          : arith::getReductionOp(op.getKind(), b, loc,
                                  generic.getCurrentValue(), op.getValue());
  memref::AtomicYieldOp::create(b, loc, result);
  op.replaceAllUsesWith(generic.getResult());
  op.erase();
}

/// The address of an element as an LLVM pointer.
Value addressOf(OpBuilder &b, Location loc, memref::GenericAtomicRMWOp op,
                IntegerType bits) {
  auto metadata =
      memref::ExtractStridedMetadataOp::create(b, loc, op.getMemref());
  Value element = metadata.getOffset();
  for (auto [index, stride] :
       llvm::zip_equal(op.getIndices(), metadata.getStrides()))
    element = arith::AddIOp::create(
        b, loc, element, arith::MulIOp::create(b, loc, index, stride));
  Type i64 = b.getI64Type();
  Value base =
      memref::ExtractAlignedPointerAsIndexOp::create(b, loc, op.getMemref());
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  base = LLVM::IntToPtrOp::create(
      b, loc, pointer,
      arith::IndexCastOp::create(b, loc, i64, base).getResult());
  Value distance = arith::IndexCastOp::create(b, loc, i64, element);
  return LLVM::GEPOp::create(b, loc, pointer, bits, base,
                             ArrayRef<LLVM::GEPArg>{distance});
}

LogicalResult lowerGeneric(memref::GenericAtomicRMWOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Type type = op.getResult().getType();
  unsigned width = type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 0;
  if (width != 1 && width != 8 && width != 16 && width != 32 && width != 64)
    return op.emitOpError() << "on elements of " << type
                            << " is not supported on the host target; it takes "
                               "elements of 1, 8, 16, 32 or 64 bits";
  // An i1 is a byte in memory, 0 or 1.
  IntegerType bits = b.getIntegerType(std::max(width, 8u));
  auto toBits = [&](Value value) -> Value {
    if (width == 1)
      return arith::ExtUIOp::create(b, loc, bits, value);
    return isa<FloatType>(type) ? arith::BitcastOp::create(b, loc, bits, value)
                                : value;
  };
  auto fromBits = [&](Value value) -> Value {
    if (width == 1)
      return arith::TruncIOp::create(b, loc, type, value);
    return isa<FloatType>(type) ? arith::BitcastOp::create(b, loc, type, value)
                                : value;
  };
  Value address = addressOf(b, loc, op, bits);
  Value first = LLVM::LoadOp::create(
      b, loc, bits, address, bits.getWidth() / 8, /*isVolatile=*/false,
      /*isNonTemporal=*/false, /*isInvariant=*/false,
      /*isInvariantGroup=*/false, LLVM::AtomicOrdering::monotonic);
  auto loop = scf::WhileOp::create(b, loc, TypeRange{bits}, ValueRange{first});
  b.createBlock(&loop.getBefore(), {}, {bits}, {loc});
  Value expected = loop.getBefore().getArgument(0);
  IRMapping map;
  map.map(op.getCurrentValue(), fromBits(expected));
  for (Operation &inner : op.getBody()->without_terminator())
    b.clone(inner, map);
  Value next =
      toBits(map.lookupOrDefault(op.getBody()->getTerminator()->getOperand(0)));
  Value exchanged = LLVM::AtomicCmpXchgOp::create(
      b, loc, address, expected, next, LLVM::AtomicOrdering::acq_rel,
      LLVM::AtomicOrdering::monotonic);
  Value found = LLVM::ExtractValueOp::create(b, loc, exchanged, 0);
  Value done = LLVM::ExtractValueOp::create(b, loc, exchanged, 1);
  Value again = arith::XOrIOp::create(
      b, loc, done, arith::ConstantIntOp::create(b, loc, 1, 1));
  scf::ConditionOp::create(b, loc, again, found);
  b.createBlock(&loop.getAfter(), {}, {bits}, {loc});
  scf::YieldOp::create(b, loc, loop.getAfter().getArgument(0));
  b.setInsertionPointAfter(loop);
  op.replaceAllUsesWith(fromBits(loop.getResult(0)));
  op.erase();
  return success();
}

} // namespace

LogicalResult lowerAtomics(ModuleOp module) {
  SmallVector<memref::AtomicRMWOp> compound;
  module.walk([&](memref::AtomicRMWOp op) {
    if (!isOneInstruction(op))
      compound.push_back(op);
  });
  llvm::for_each(compound, makeGeneric);
  SmallVector<memref::GenericAtomicRMWOp> generic;
  module.walk([&](memref::GenericAtomicRMWOp op) { generic.push_back(op); });
  return success(llvm::all_of(generic, [](memref::GenericAtomicRMWOp op) {
    return succeeded(lowerGeneric(op));
  }));
}

} // namespace mgpu::kernels

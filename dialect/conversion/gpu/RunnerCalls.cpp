// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions of MLIR's runner that give values: clocks, comparisons of memrefs,
// and memory as a device sees it.
#include "dialect/conversion/gpu/GpuHost.h"
#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mgpu::conversion {

using namespace mlir;

namespace {

/// The name of the function outside of the module that `op` calls, if it is one
/// with a result of type `result`.
StringRef outerFunction(Operation *op, unsigned numOperands,
                        function_ref<bool(Type)> isResult) {
  auto call = dyn_cast<func::CallOp>(op);
  if (!call || call.getNumOperands() != numOperands ||
      call.getNumResults() != 1 || !isResult(call.getResult(0).getType()))
    return {};
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      call, call.getCalleeAttr());
  return callee && callee.isExternal() ? call.getCallee() : StringRef();
}

/// The memref of known rank that a call is given without one.
Value rankedOf(Value memref) {
  while (!isa<MemRefType>(memref.getType())) {
    auto cast = memref.getDefiningOp<memref::CastOp>();
    if (!cast)
      return {};
    memref = cast.getSource();
  }
  return memref;
}

/// Whether the runner takes two elements for different: floats by their
/// distance, of which it allows some.
Value differ(OpBuilder &b, Location loc, Value x, Value y) {
  auto type = dyn_cast<FloatType>(x.getType());
  if (!type)
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, x, y);
  using Predicate = arith::CmpFPredicate;
  auto constant = [&](APFloat value) -> Value {
    bool loses;
    value.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                  &loses);
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
  };
  auto compare = [&](Predicate predicate, Value left, Value right) -> Value {
    return arith::CmpFOp::create(b, loc, predicate, left, right);
  };
  auto sizeOf = [&](Value value) -> Value {
    Value negated = arith::NegFOp::create(b, loc, value);
    return arith::MaximumFOp::create(b, loc, value, negated);
  };
  Value larger = arith::MaximumFOp::create(b, loc, sizeOf(x), sizeOf(y));
  Value infinity = constant(APFloat::getInf(APFloat::IEEEdouble()));
  Value isFinite = compare(Predicate::OLT, larger, infinity);
  Value distance = sizeOf(arith::SubFOp::create(b, loc, x, y));
  Value relative = arith::DivFOp::create(b, loc, distance, larger);
  Value isNear = compare(Predicate::OLT, relative,
                         constant(APFloat(type.isF64() ? 1e-12 : 1e-6)));
  Value isSame =
      arith::OrIOp::create(b, loc, compare(Predicate::OEQ, x, y), isNear);
  Value isFine = arith::AndIOp::create(b, loc, isFinite, isSame);
  Value yes = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
  return arith::XOrIOp::create(b, loc, isFine, yes);
}

/// How many elements of two memrefs differ: loops of the host.
Value countDifferences(OpBuilder &b, Location loc, Value x, Value y) {
  auto type = cast<MemRefType>(x.getType());
  Value zero = arith::ConstantIndexOp::create(b, loc, 0),
        one = arith::ConstantIndexOp::create(b, loc, 1);
  Value count = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(0));
  SmallVector<Value> indices;
  Value result;
  scf::ForOp inner;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    Value size = b.createOrFold<memref::DimOp>(loc, x, dim);
    auto loop = scf::ForOp::create(b, loc, zero, size, one, count);
    if (inner)
      scf::YieldOp::create(b, loc, loop.getResults());
    else
      result = loop.getResult(0);
    inner = loop;
    count = loop.getRegionIterArg(0);
    indices.push_back(loop.getInductionVar());
    b.setInsertionPointToStart(loop.getBody());
  }
  Value isOther = differ(b, loc, memref::LoadOp::create(b, loc, x, indices),
                         memref::LoadOp::create(b, loc, y, indices));
  Value more = arith::ExtUIOp::create(b, loc, b.getI64Type(), isOther);
  Value sum = arith::AddIOp::create(b, loc, count, more);
  if (!inner)
    return sum;
  scf::YieldOp::create(b, loc, sum);
  return result;
}

bool isClock(Operation *op) {
  return outerFunction(op, 0, [](Type type) { return type.isF64(); }) ==
             "rtclock" ||
         outerFunction(op, 0, [](Type type) { return type.isInteger(64); }) ==
             "nanoTime";
}

bool isComparison(Operation *op) {
  StringRef name =
      outerFunction(op, 2, [](Type type) { return type.isInteger(64); });
  return name.consume_front("verifyMemRef") &&
         llvm::is_contained({"I8", "I16", "I32", "I64", "F32", "F64"}, name) &&
         llvm::all_of(op->getOperandTypes(), llvm::IsaPred<BaseMemRefType>);
}

/// A call that gives the device's view of registered memory.
bool isDeviceView(Operation *op) {
  return outerFunction(op, 1,
                       [&](Type type) {
                         return isa<BaseMemRefType>(type) &&
                                type == op->getOperand(0).getType();
                       })
      .starts_with("mgpuMemGetDeviceMemRef");
}

/// A clock has no value before the program runs, which it is planned before.
void convertClock(Operation *op) {
  Type type = op->getResult(0).getType();
  const bool isFloat = isa<FloatType>(type);
  op->emitWarning(isFloat ? "rtclock gives a NaN" : "nanoTime gives 0")
      << " here: the program is planned before it runs, so its host code has "
         "no time; 'run' and 'profile' measure";
  OpBuilder b(op);
  TypedAttr value = b.getZeroAttr(type);
  if (isFloat)
    value = b.getFloatAttr(
        type, APFloat::getNaN(cast<FloatType>(type).getFloatSemantics()));
  op->replaceAllUsesWith(arith::ConstantOp::create(b, op->getLoc(), value));
  op->erase();
}

LogicalResult convertComparison(Operation *op) {
  Value x = rankedOf(op->getOperand(0)), y = rankedOf(op->getOperand(1));
  if (!x || !y)
    return ir::emitUnsupported(op)
           << "compares memrefs whose rank the text does not show";
  auto xType = cast<MemRefType>(x.getType()),
       yType = cast<MemRefType>(y.getType());
  if (xType.getElementType() != yType.getElementType() ||
      failed(verifyCompatibleShape(xType.getShape(), yType.getShape())))
    return op->emitOpError("compares ")
           << xType << " with " << yType << ", which have no elements alike";
  OpBuilder b(op);
  op->replaceAllUsesWith(ValueRange(countDifferences(b, op->getLoc(), x, y)));
  op->erase();
  return success();
}

} // namespace

bool isRunnerCall(Operation *op) {
  return isClock(op) || isComparison(op) || isDeviceView(op);
}

LogicalResult convertRunnerCall(Operation *op) {
  if (isComparison(op))
    return convertComparison(op);
  if (isClock(op)) {
    convertClock(op);
    return success();
  }
  op->replaceAllUsesWith(op->getOperands()); // both have one memory
  op->erase();
  return success();
}

} // namespace mgpu::conversion

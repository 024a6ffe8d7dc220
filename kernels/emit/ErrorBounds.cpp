// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/numerics.md has the rules and where they come from. What was there stays
// and is dead where a wide value takes its place: LLVM removes it.
#include "kernels/emit/ErrorBounds.h"

#include "kernels/emit/MathAccuracy.h"

#include "device/host/HostKernelAbi.h"
#include "planner/dag/ErrorSeeds.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/RegionGraphTraits.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/PostOrderIterator.h"

#include <bit>
#include <cmath>

using namespace mlir;

namespace mgpu::kernels {

namespace {

/// A float in f64: a sum of `terms` terms whose magnitudes add up to
/// `magnitude`, each with the errors it had before, together `error`. Without
/// `terms` it is one term, of its own magnitude.
struct Wide {
  Value value, error;
  Value magnitude = {}, terms = {};
};

bool isFloat(Type type) { return isa<FloatType>(type); }
bool hasFloat(Type type) {
  return isFloat(isa<VectorType>(type) ? getElementTypeOrSelf(type) : type);
}

/// Half a unit in the last place, of 1.
double unitOf(Type type) {
  return std::ldexp(1.0, -int(llvm::APFloat::semanticsPrecision(
                             cast<FloatType>(type).getFloatSemantics())));
}

class Widener {
public:
  Widener(func::FuncOp function, unsigned seed)
      : function(function), seedPosition(seed), b(function.getContext()),
        loc(function.getLoc()) {}

  LogicalResult run();

private:
  Type f64() { return b.getF64Type(); }
  Value real(double value) {
    return arith::ConstantOp::create(b, loc, b.getF64FloatAttr(value));
  }
  Value word(uint64_t value) {
    return arith::ConstantOp::create(b, loc,
                                     b.getI64IntegerAttr(int64_t(value)));
  }
  template <typename Op>
  Value make(Value x, Value y) {
    return Op::create(b, loc, x, y);
  }
  Value plus(Value x, Value y) { return make<arith::AddFOp>(x, y); }
  Value minus(Value x, Value y) { return make<arith::SubFOp>(x, y); }
  Value times(Value x, Value y) { return make<arith::MulFOp>(x, y); }
  Value size(Value x) { return math::AbsFOp::create(b, loc, x); }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, loc, condition, x, y);
  }
  Value less(Value x, Value y) {
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x, y);
  }
  Value isFinite(Value x) { return less(size(x), real(INFINITY)); }

  Value magnitude(const Wide &x) {
    return x.terms ? x.magnitude : size(x.value);
  }
  Value terms(const Wide &x) { return x.terms ? x.terms : real(1); }
  Value errorOf(const Wide &x, Type type);
  Wide sum(const Wide &x, const Wide &y, Value value);
  Wide rounded(Value value, Value error, double units, Type type);
  Wide product(const Wide &x, const Wide &y, Value value, Type type);
  Wide quotient(const Wide &x, const Wide &y, Value value, Type type);
  Wide larger(const Wide &x, const Wide &y, Value value, Type type);
  Wide either(Value condition, const Wide &x, const Wide &y);
  Wide function_(Operation *op, ArrayRef<Wide> operands, Type type);
  Value apply(Operation *op, ValueRange operands);
  Wide leaf(Value value);

  void begin();
  void widenArray(memref::AllocaOp array);
  Value direction(ValueRange indices);
  Value stored(const Wide &x, Type type, ValueRange indices);
  LogicalResult widen(Operation *op);
  LogicalResult widenFloat(Operation *op);
  LogicalResult widenBranch(BranchOpInterface branch);
  void use(Operation *op, unsigned operand, Value instead) {
    op->setOperand(operand, instead);
  }

  func::FuncOp function;
  unsigned seedPosition;
  OpBuilder b;
  Location loc;
  llvm::DenseMap<Value, Wide> wide, arrays;
  Value seed, salt, trial; ///< trial: 0 where nothing is moved
  uint64_t numStores = 0;
};

/// Bounds the difference between any two orders of the sum, and of what was
/// before: of a sum of n terms the deviation is about sqrt(n - 1) roundings of
/// the sum of magnitudes (Higham and Mary 2019). None of infinities and NaNs.
Value Widener::errorOf(const Wide &x, Type type) {
  Value error = x.error;
  if (x.terms) {
    Value roundings = math::SqrtOp::create(b, loc, minus(x.terms, real(1)));
    error =
        plus(error, times(times(roundings, x.magnitude), real(unitOf(type))));
  }
  return select(isFinite(x.value), error, real(0));
}

Wide Widener::sum(const Wide &x, const Wide &y, Value value) {
  return {value, plus(x.error, y.error), plus(magnitude(x), magnitude(y)),
          plus(terms(x), terms(y))};
}

/// One rounding beside those of the operands; `units` are halves of a unit in
/// the last place.
Wide Widener::rounded(Value value, Value error, double units, Type type) {
  Value own = times(size(value), real(units * unitOf(type)));
  return {value, error ? plus(error, own) : own};
}

Wide Widener::product(const Wide &x, const Wide &y, Value value, Type type) {
  Value ofX = errorOf(x, type), ofY = errorOf(y, type);
  Value error = plus(plus(times(size(x.value), ofY), times(size(y.value), ofX)),
                     times(ofX, ofY));
  return rounded(value, error, 1, type);
}

Wide Widener::quotient(const Wide &x, const Wide &y, Value value, Type type) {
  Value ofX = errorOf(x, type), ofY = errorOf(y, type);
  Value error =
      make<arith::DivFOp>(plus(ofX, times(size(value), ofY)), size(y.value));
  // x / y of an exact zero is exact, even where y is 0, too.
  return rounded(value, error, 1, type);
}

Wide Widener::larger(const Wide &x, const Wide &y, Value value, Type type) {
  return {value, make<arith::MaximumFOp>(errorOf(x, type), errorOf(y, type))};
}

Wide Widener::either(Value condition, const Wide &x, const Wide &y) {
  Wide chosen{select(condition, x.value, y.value),
              select(condition, x.error, y.error)};
  if (x.terms || y.terms) {
    chosen.magnitude = select(condition, magnitude(x), magnitude(y));
    chosen.terms = select(condition, terms(x), terms(y));
  }
  return chosen;
}

Value Widener::apply(Operation *op, ValueRange operands) {
  OperationState state(loc, op->getName());
  state.addOperands(operands);
  state.addTypes(f64());
  return b.create(state)->getResult(0);
}

/// By how much the result changes where an operand is off to either side.
Wide Widener::function_(Operation *op, ArrayRef<Wide> operands, Type type) {
  SmallVector<Value> values;
  for (const Wide &operand : operands)
    values.push_back(operand.value);
  Value value = apply(op, values), error = real(0);
  for (auto [k, operand] : llvm::enumerate(operands)) {
    Value off = errorOf(operand, type);
    Value most = real(0);
    for (Value moved : {plus(operand.value, off), minus(operand.value, off)}) {
      SmallVector<Value> there = values;
      there[k] = moved;
      // Of two numbers the larger: a function may end here.
      most = make<arith::MaxNumFOp>(most, size(minus(apply(op, there), value)));
    }
    error = plus(error, most);
  }
  const FunctionUlps *ulps = ulpsOf(op->getName().stripDialect());
  bool rounds = ulps != nullptr;
  // Rounding gives half a unit to what a function is off.
  return rounds ? rounded(value, error, 2 * ulps->most(type.isF64()) + 1, type)
                : Wide{value, error};
}

Wide Widener::leaf(Value value) {
  Value wider = value.getType().isF64()
                    ? value
                    : arith::ExtFOp::create(b, loc, f64(), value).getResult();
  return {wider, real(0)};
}

/// Reads the seed where the function begins.
void Widener::begin() {
  b.setInsertionPointToStart(&function.getBody().front());
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Value address = LLVM::GEPOp::create(
      b, loc, pointer, b.getI64Type(), function.getArgument(0),
      ArrayRef<LLVM::GEPArg>{int32_t(seedPosition)});
  seed = LLVM::LoadOp::create(b, loc, b.getI64Type(), address);
  trial = make<arith::AndIOp>(seed, word(255));
  salt = make<arith::ShRUIOp>(seed, word(8));
}

/// An array of the kernel's own keeps all that is known of its numbers, if it
/// is only loaded from and stored to.
void Widener::widenArray(memref::AllocaOp array) {
  constexpr int64_t mostElements = 1 << 14; // of a stack
  MemRefType type = array.getType();
  if (!isFloat(type.getElementType()) || !type.hasStaticShape() ||
      type.getNumElements() > mostElements ||
      !llvm::all_of(array->getUsers(), [&](Operation *user) {
        auto store = dyn_cast<memref::StoreOp>(user);
        return isa<memref::LoadOp>(user) ||
               (store && store.getMemref() == array.getResult());
      }))
    return;
  b.setInsertionPointAfter(array);
  auto wider = MemRefType::get(type.getShape(), f64(), type.getLayout(),
                               type.getMemorySpace());
  auto make = [&]() -> Value {
    return memref::AllocaOp::create(b, array.getLoc(), wider);
  };
  Wide &x = arrays[array.getResult()];
  x.value = make();
  x.error = make();
  x.magnitude = make();
  x.terms = make();
}

/// 1 or -1: of a Hadamard matrix with a row for each trial, an element of the
/// column that what is stored where chooses, times a sign it has as well. The
/// first column, of ones only, is left out.
Value Widener::direction(ValueRange indices) {
  static_assert(std::has_single_bit(planner::numErrorTrials));
  Value h =
      make<arith::AddIOp>(make<arith::MulIOp>(salt, word(0x9e3779b97f4a7c15)),
                          word(++numStores * 0xbf58476d1ce4e5b9));
  auto mix = [&] { // the steps of SplitMix64 (Steele, Lea and Flood 2014)
    h = make<arith::XOrIOp>(h, make<arith::ShRUIOp>(h, word(30)));
    h = make<arith::MulIOp>(h, word(0xbf58476d1ce4e5b9));
    h = make<arith::XOrIOp>(h, make<arith::ShRUIOp>(h, word(27)));
    h = make<arith::MulIOp>(h, word(0x94d049bb133111eb));
    h = make<arith::XOrIOp>(h, make<arith::ShRUIOp>(h, word(31)));
  };
  for (Value index : indices) {
    Value number = arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
    h = make<arith::AddIOp>(make<arith::MulIOp>(h, word(0x9e3779b97f4a7c15)),
                            number);
  }
  mix();
  Value column = make<arith::AddIOp>(
      make<arith::RemUIOp>(make<arith::ShRUIOp>(h, word(8)),
                           word(planner::numErrorTrials - 1)),
      word(1));
  Value row = make<arith::SubIOp>(trial, word(1));
  Value parity =
      math::CtPopOp::create(b, loc, make<arith::AndIOp>(column, row));
  Value bit = make<arith::AndIOp>(make<arith::XOrIOp>(parity, h), word(1));
  Value whole = arith::UIToFPOp::create(b, loc, f64(), bit);
  return minus(real(1), times(real(2), whole));
}

/// What goes to memory: the value in its type, moved by its error. What has
/// none, and was only moved, stays.
Value Widener::stored(const Wide &x, Type type, ValueRange indices) {
  Value error = errorOf(x, type);
  Value off = times(real(planner::errorDeviations), error);
  // An error without bound leaves no number to compare with.
  Value unbounded = select(
      isFinite(x.value),
      arith::ConstantOp::create(b, loc, b.getFloatAttr(f64(), NAN)), x.value);
  Value moved = select(
      isFinite(off), plus(x.value, times(direction(indices), off)), unbounded);
  Value exact =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, trial, word(0));
  // 0 - 0 and -0 as they are.
  Value still =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, error, real(0));
  Value result = select(make<arith::OrIOp>(exact, still), x.value, moved);
  if (type.isF64())
    return result;
  return arith::TruncFOp::create(b, loc, type, result);
}

LogicalResult Widener::widenBranch(BranchOpInterface branch) {
  for (unsigned k = 0; k < branch->getNumSuccessors(); ++k) {
    SuccessorOperands operands = branch.getSuccessorOperands(k);
    SmallVector<Value> more;
    for (Value operand : operands.getForwardedOperands())
      if (isFloat(operand.getType())) {
        const Wide &x = wide.at(operand);
        llvm::append_values(more, x.value, x.error, magnitude(x), terms(x));
      }
    operands.append(more);
  }
  return success();
}

LogicalResult Widener::widenFloat(Operation *op) {
  Value result = op->getResult(0);
  Type type = result.getType();
  auto at = [&](unsigned k) { return wide.at(op->getOperand(k)); };
  auto plain = [&](auto typed) { // the same operation on the wide values
    return apply(typed, {at(0).value, at(1).value});
  };
  Wide &out = wide[result];
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    llvm::APFloat value = cast<FloatAttr>(constant.getValue()).getValue();
    bool ignored;
    value.convert(llvm::APFloat::IEEEdouble(),
                  llvm::APFloat::rmNearestTiesToEven, &ignored);
    out = {real(value.convertToDouble()), real(0)};
  } else if (auto load = dyn_cast<memref::LoadOp>(op);
             load && arrays.contains(load.getMemref())) {
    const Wide &array = arrays.at(load.getMemref());
    auto from = [&](Value part) -> Value {
      return memref::LoadOp::create(b, loc, part, load.getIndices());
    };
    out = {from(array.value), from(array.error), from(array.magnitude),
           from(array.terms)};
  } else if (isa<memref::LoadOp, memref::AtomicRMWOp, arith::BitcastOp,
                 LLVM::LoadOp>(op)) {
    out = leaf(result);
  } else if (isa<arith::AddFOp, arith::SubFOp>(op)) {
    Wide x = at(0), y = at(1);
    out = sum(x, y, plain(op));
  } else if (isa<arith::MulFOp>(op)) {
    Wide x = at(0), y = at(1);
    out = product(x, y, plain(op), type);
  } else if (isa<arith::DivFOp>(op)) {
    Wide x = at(0), y = at(1);
    out = quotient(x, y, plain(op), type);
  } else if (isa<math::FmaOp>(op)) { // or a product that is rounded, and a sum
    Wide x = at(0), y = at(1), z = at(2);
    Wide part = product(x, y, times(x.value, y.value), type);
    out = sum(part, z, apply(op, {x.value, y.value, z.value}));
  } else if (isa<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
                 arith::MinNumFOp>(op)) {
    Wide x = at(0), y = at(1);
    out = larger(x, y, plain(op), type);
  } else if (isa<arith::NegFOp, math::AbsFOp>(op)) {
    Wide x = at(0);
    x.value = apply(op, x.value);
    out = x;
  } else if (isa<arith::SelectOp>(op)) {
    out = either(op->getOperand(0), at(1), at(2));
  } else if (isa<arith::ExtFOp>(op)) {
    Wide x = at(0);
    out = {x.value, errorOf(x, op->getOperand(0).getType())};
  } else if (isa<arith::TruncFOp>(op)) {
    Wide x = at(0);
    Value error = errorOf(x, op->getOperand(0).getType());
    // What only goes to memory is rounded there, once and in every run.
    bool isStored = llvm::all_of(result.getUsers(), [&](Operation *user) {
      auto store = dyn_cast<memref::StoreOp>(user);
      return store && !arrays.contains(store.getMemref());
    });
    out = isStored ? Wide{x.value, error} : rounded(x.value, error, 1, type);
  } else if (isa<arith::SIToFPOp, arith::UIToFPOp>(op)) {
    Value value = apply(op, op->getOperand(0));
    Value here = leaf(result).value;
    // Exact where the type has the number.
    Value same =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, here, value);
    out = {value,
           select(same, real(0), times(size(value), real(unitOf(type))))};
  } else if (isa<arith::RemFOp>(op) ||
             (isa<math::MathDialect>(op->getDialect()) &&
              llvm::all_of(op->getOperandTypes(), isFloat))) {
    SmallVector<Wide> operands;
    for (unsigned k = 0; k < op->getNumOperands(); ++k)
      operands.push_back(at(k));
    out = function_(op, operands, type);
  } else {
    wide.erase(result);
    return op->emitOpError("has no rule for its rounding error");
  }
  return success();
}

LogicalResult Widener::widen(Operation *op) {
  loc = op->getLoc();
  bool takes = llvm::any_of(op->getOperandTypes(), hasFloat);
  bool gives = llvm::any_of(op->getResultTypes(), hasFloat);
  if (!takes && !gives)
    return success();
  auto isVector = [](Type type) { return isa<VectorType>(type); };
  if (llvm::any_of(op->getOperandTypes(), isVector) ||
      llvm::any_of(op->getResultTypes(), isVector) || op->getNumRegions() > 0)
    return op->emitOpError("has no rule for its rounding error");
  if (auto branch = dyn_cast<BranchOpInterface>(op)) {
    b.setInsertionPoint(op);
    return widenBranch(branch);
  }
  auto typeAt = [&](unsigned k) { return op->getOperand(k).getType(); };
  b.setInsertionPoint(op);
  // Where a float ends: what takes it takes it wide.
  if (auto store = dyn_cast<memref::StoreOp>(op);
      store && arrays.contains(store.getMemref())) {
    const Wide &array = arrays.at(store.getMemref());
    const Wide &x = wide.at(store.getValue());
    for (auto [part, into] : {std::pair(x.value, array.value),
                              {x.error, array.error},
                              {magnitude(x), array.magnitude},
                              {terms(x), array.terms}})
      memref::StoreOp::create(b, loc, part, into, store.getIndices());
    return success();
  }
  if (auto store = dyn_cast<memref::StoreOp>(op)) {
    use(op, 0,
        stored(wide.at(op->getOperand(0)), typeAt(0), store.getIndices()));
    return success();
  }
  auto atomic = dyn_cast<memref::AtomicRMWOp>(op);
  if (atomic && (atomic.getKind() == arith::AtomicRMWKind::addf ||
                 atomic.getKind() == arith::AtomicRMWKind::mulf))
    return op->emitOpError("has no rule for its rounding error");
  if (atomic)
    use(op, 0,
        stored(wide.at(op->getOperand(0)), typeAt(0), atomic.getIndices()));
  else if (isa<arith::BitcastOp>(op) && takes)
    use(op, 0, stored(wide.at(op->getOperand(0)), typeAt(0), {}));
  else if (takes && !gives &&
           (isa<arith::CmpFOp, arith::FPToSIOp, arith::FPToUIOp, math::IsNaNOp,
                math::IsInfOp, math::IsFiniteOp>(op)))
    for (unsigned k = 0; k < op->getNumOperands(); ++k)
      use(op, k, wide.at(op->getOperand(k)).value);
  else if (isa<gpu::PrintfOp>(op))
    return success(); // says what the type says
  if (!gives)
    return isa<arith::BitcastOp, arith::CmpFOp, arith::FPToSIOp,
               arith::FPToUIOp, math::IsNaNOp, math::IsInfOp, math::IsFiniteOp>(
               op)
               ? success()
               : op->emitOpError("has no rule for its rounding error");
  if (op->getNumResults() != 1)
    return op->emitOpError("has no rule for its rounding error");
  b.setInsertionPointAfter(op);
  return widenFloat(op);
}

LogicalResult Widener::run() {
  if (function.isDeclaration())
    return success();
  if (function.getName() != device::hostKernelEntryName) {
    auto walked = function.walk([&](Operation *op) {
      return llvm::any_of(op->getResultTypes(), hasFloat)
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return function.emitOpError(
          "is a function of floats that stays one, and has no rule for its "
          "rounding error");
    return success();
  }
  begin();
  function.walk([&](memref::AllocaOp array) { widenArray(array); });
  for (Block &block : llvm::drop_begin(function.getBody()))
    for (BlockArgument argument : llvm::to_vector(block.getArguments()))
      if (isFloat(argument.getType())) {
        Location at = argument.getLoc();
        Wide &x = wide[argument];
        x.value = block.addArgument(f64(), at);
        x.error = block.addArgument(f64(), at);
        x.magnitude = block.addArgument(f64(), at);
        x.terms = block.addArgument(f64(), at);
      }
  llvm::ReversePostOrderTraversal<Region *> order(&function.getBody());
  for (Block *block : order)
    for (Operation &op : llvm::make_early_inc_range(*block))
      if (failed(widen(&op)))
        return failure();
  return success();
}

} // namespace

LogicalResult addErrorBounds(ModuleOp module, unsigned seed) {
  PassManager pm(module.getContext());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createSCFToControlFlowPass());
  if (failed(pm.run(module)))
    return failure();
  for (func::FuncOp function : llvm::to_vector(module.getOps<func::FuncOp>()))
    if (failed(Widener(function, seed).run()))
      return failure();
  return success();
}

} // namespace mgpu::kernels

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/numerics.md has the rules and where they come from. An operation stays
// and is dead where a wide value takes its place: LLVM removes it.
#include "kernels/host/ErrorBounds.h"

#include "kernels/abi/HostKernelAbi.h"
#include "kernels/lower/MathAccuracy.h"
#include "kernels/space/ErrorSeeds.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/RegionGraphTraits.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/TypeSwitch.h"

#include <bit>
#include <cmath>

using namespace mlir;

namespace mgpu::kernels {

namespace {

// Propagates errors: what each operation does to those of its operands
// (docs/numerics.md has the table), as operations on f64.

/// A float in f64: a sum of `terms` terms whose magnitudes add up to
/// `magnitude`, each with the errors it had before, together `error`. Without
/// `terms` it is one term with its own magnitude.
struct Wide {
  mlir::Value value, error;
  mlir::Value magnitude = {}, terms = {};
};

/// Builds at `b`. A `type` is that of the program's operation.
class ErrorRules {
public:
  explicit ErrorRules(mlir::Location loc) : b(loc.getContext()), loc(loc) {}

protected:
  using Value = mlir::Value;
  using Type = mlir::Type;

  Type f64() { return b.getF64Type(); }
  Value real(double value) {
    return mlir::arith::ConstantOp::create(b, loc, b.getF64FloatAttr(value));
  }
  Value word(uint64_t value) {
    return mlir::arith::ConstantOp::create(b, loc,
                                           b.getI64IntegerAttr(int64_t(value)));
  }
  template <typename Op>
  Value make(Value x, Value y) {
    return Op::create(b, loc, x, y);
  }
  Value plus(Value x, Value y) { return make<mlir::arith::AddFOp>(x, y); }
  Value minus(Value x, Value y) { return make<mlir::arith::SubFOp>(x, y); }
  Value times(Value x, Value y) { return make<mlir::arith::MulFOp>(x, y); }
  Value size(Value x) { return mlir::math::AbsFOp::create(b, loc, x); }
  Value select(Value condition, Value x, Value y) {
    return mlir::arith::SelectOp::create(b, loc, condition, x, y);
  }
  Value less(Value x, Value y) {
    return mlir::arith::CmpFOp::create(b, loc, mlir::arith::CmpFPredicate::OLT,
                                       x, y);
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
  Wide evaluated(mlir::Operation *op, llvm::ArrayRef<Wide> operands, Type type);
  Value apply(mlir::Operation *op, mlir::ValueRange operands);

  mlir::OpBuilder b;
  mlir::Location loc;
};

/// Half a unit in the last place, of 1.
static double unitOf(Type type) {
  return std::ldexp(1.0, -int(llvm::APFloat::semanticsPrecision(
                             cast<FloatType>(type).getFloatSemantics())));
}

/// Bounds the difference between any two orders of the sum, and what was
/// before. A sum of n terms deviates by about sqrt(n - 1) roundings of the sum
/// of magnitudes (Higham and Mary 2019). Infinities and NaNs have no bound.
Value ErrorRules::errorOf(const Wide &x, Type type) {
  Value error = x.error;
  if (x.terms) {
    Value roundings = math::SqrtOp::create(b, loc, minus(x.terms, real(1)));
    error =
        plus(error, times(times(roundings, x.magnitude), real(unitOf(type))));
  }
  return select(isFinite(x.value), error, real(0));
}

Wide ErrorRules::sum(const Wide &x, const Wide &y, Value value) {
  return {value, plus(x.error, y.error), plus(magnitude(x), magnitude(y)),
          plus(terms(x), terms(y))};
}

/// One rounding beside those of the operands; `units` are halves of a unit in
/// the last place.
Wide ErrorRules::rounded(Value value, Value error, double units, Type type) {
  Value own = times(size(value), real(units * unitOf(type)));
  return {value, error ? plus(error, own) : own};
}

Wide ErrorRules::product(const Wide &x, const Wide &y, Value value, Type type) {
  Value ofX = errorOf(x, type), ofY = errorOf(y, type);
  Value error = plus(plus(times(size(x.value), ofY), times(size(y.value), ofX)),
                     times(ofX, ofY));
  return rounded(value, error, 1, type);
}

Wide ErrorRules::quotient(const Wide &x, const Wide &y, Value value,
                          Type type) {
  Value ofX = errorOf(x, type), ofY = errorOf(y, type);
  Value error =
      make<arith::DivFOp>(plus(ofX, times(size(value), ofY)), size(y.value));
  return rounded(value, error, 1, type);
}

Wide ErrorRules::larger(const Wide &x, const Wide &y, Value value, Type type) {
  return {value, make<arith::MaximumFOp>(errorOf(x, type), errorOf(y, type))};
}

Wide ErrorRules::either(Value condition, const Wide &x, const Wide &y) {
  Wide chosen{select(condition, x.value, y.value),
              select(condition, x.error, y.error)};
  if (x.terms || y.terms) {
    chosen.magnitude = select(condition, magnitude(x), magnitude(y));
    chosen.terms = select(condition, terms(x), terms(y));
  }
  return chosen;
}

Value ErrorRules::apply(Operation *op, ValueRange operands) {
  OperationState state(loc, op->getName());
  state.addOperands(operands);
  state.addTypes(f64());
  return b.create(state)->getResult(0);
}

/// By how much the result changes where an operand is off to either side.
Wide ErrorRules::evaluated(Operation *op, ArrayRef<Wide> operands, Type type) {
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
      // MaxNum passes over NaN: the function's domain may end here.
      most = make<arith::MaxNumFOp>(most, size(minus(apply(op, there), value)));
    }
    error = plus(error, most);
  }
  const FunctionUlps *ulps = ulpsOf(op->getName().stripDialect());
  // The error of a function is counted from the exact result rounded.
  return ulps ? rounded(value, error, 2 * ulps->most(type.isF64()) + 1, type)
              : Wide{value, error};
}

bool isFloat(Type type) { return isa<FloatType>(type); }
bool hasFloat(Type type) {
  return isFloat(isa<VectorType>(type) ? getElementTypeOrSelf(type) : type);
}

class Widener : private ErrorRules {
public:
  Widener(func::FuncOp function, unsigned seed)
      : ErrorRules(function.getLoc()), function(function), seedPosition(seed) {}

  LogicalResult run();

private:
  Wide leaf(Value value);

  void begin();
  void widenArray(memref::AllocaOp array);
  Value direction(ValueRange indices);
  Value stored(const Wide &x, Type type, ValueRange indices);
  LogicalResult widen(Operation *op);
  Wide truncated(arith::TruncFOp op);
  Wide loaded(memref::LoadOp load);
  Wide converted(Operation *op);
  LogicalResult widenFloat(Operation *op);
  LogicalResult widenBranch(BranchOpInterface branch);

  func::FuncOp function;
  unsigned seedPosition;
  llvm::DenseMap<Value, Wide> wide, arrays;
  Value seed, salt, trial; ///< trial: 0 where nothing is moved
  uint64_t numStores = 0;
};

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

/// 1 or -1: an element of a Hadamard matrix with a row for each trial. The
/// store and its place choose the column, and a sign that the element is
/// multiplied by. The first column, which is all ones, is left out.
Value Widener::direction(ValueRange indices) {
  static_assert(std::has_single_bit(numErrorTrials));
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
  Value column =
      make<arith::AddIOp>(make<arith::RemUIOp>(make<arith::ShRUIOp>(h, word(8)),
                                               word(numErrorTrials - 1)),
                          word(1));
  Value row = make<arith::SubIOp>(trial, word(1));
  Value parity =
      math::CtPopOp::create(b, loc, make<arith::AndIOp>(column, row));
  Value bit = make<arith::AndIOp>(make<arith::XOrIOp>(parity, h), word(1));
  Value whole = arith::UIToFPOp::create(b, loc, f64(), bit);
  return minus(real(1), times(real(2), whole));
}

/// Makes the value that goes to memory: in its type, moved by its error. A
/// value that has none, and was only moved, stays.
Value Widener::stored(const Wide &x, Type type, ValueRange indices) {
  Value error = errorOf(x, type);
  Value off = times(real(errorDeviations), error);
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

Wide Widener::truncated(arith::TruncFOp op) {
  Wide x = wide.at(op.getIn());
  Value error = errorOf(x, op.getIn().getType());
  // A value that only goes to memory is rounded there, once and in every run.
  bool isStored = llvm::all_of(op->getUsers(), [&](Operation *user) {
    auto store = dyn_cast<memref::StoreOp>(user);
    return store && !arrays.contains(store.getMemref());
  });
  return isStored ? Wide{x.value, error}
                  : rounded(x.value, error, 1, op.getType());
}

Wide Widener::loaded(memref::LoadOp load) {
  if (!arrays.contains(load.getMemref()))
    return leaf(load.getResult());
  const Wide &array = arrays.at(load.getMemref());
  auto from = [&](Value part) -> Value {
    return memref::LoadOp::create(b, loc, part, load.getIndices());
  };
  Value value = from(array.value), error = from(array.error),
        magnitude = from(array.magnitude), terms = from(array.terms);
  return {value, error, magnitude, terms};
}

/// A float of an integer, exact where the type has the number.
Wide Widener::converted(Operation *op) {
  Value result = op->getResult(0);
  Value value = apply(op, op->getOperand(0));
  Value here = leaf(result).value;
  Value same =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, here, value);
  return {value,
          select(same, real(0), rounded(value, {}, 1, result.getType()).error)};
}

LogicalResult Widener::widenFloat(Operation *op) {
  Value result = op->getResult(0);
  Type type = result.getType();
  auto at = [&](unsigned k) { return wide.at(op->getOperand(k)); };
  auto plain = [&] { // the same operation on the wide values
    return apply(op, {at(0).value, at(1).value});
  };
  std::optional<Wide> out =
      TypeSwitch<Operation *, std::optional<Wide>>(op)
          .Case([&](arith::ConstantOp constant) {
            llvm::APFloat value =
                cast<FloatAttr>(constant.getValue()).getValue();
            bool ignored;
            value.convert(llvm::APFloat::IEEEdouble(),
                          llvm::APFloat::rmNearestTiesToEven, &ignored);
            return Wide{real(value.convertToDouble()), real(0)};
          })
          .Case([&](memref::LoadOp load) { return loaded(load); })
          .Case<memref::AtomicRMWOp, arith::BitcastOp, LLVM::LoadOp>(
              [&](auto) { return leaf(result); })
          .Case<arith::AddFOp, arith::SubFOp>(
              [&](auto) { return sum(at(0), at(1), plain()); })
          .Case([&](arith::MulFOp) {
            return product(at(0), at(1), plain(), type);
          })
          .Case([&](arith::DivFOp) {
            return quotient(at(0), at(1), plain(), type);
          })
          .Case([&](math::FmaOp) { // or a product that is rounded, and a sum
            Wide x = at(0), y = at(1), z = at(2);
            Wide part = product(x, y, times(x.value, y.value), type);
            // In f64 the product of two f32 is exact.
            Value value = type.isF64() ? apply(op, {x.value, y.value, z.value})
                                       : plus(part.value, z.value);
            return sum(part, z, value);
          })
          .Case<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
                arith::MinNumFOp>(
              [&](auto) { return larger(at(0), at(1), plain(), type); })
          .Case<arith::NegFOp, math::AbsFOp>([&](auto) {
            Wide x = at(0);
            x.value = apply(op, x.value);
            return x;
          })
          .Case([&](arith::SelectOp) {
            return either(op->getOperand(0), at(1), at(2));
          })
          .Case([&](arith::ExtFOp) {
            Wide x = at(0);
            return Wide{x.value, errorOf(x, op->getOperand(0).getType())};
          })
          .Case([&](arith::TruncFOp truncate) { return truncated(truncate); })
          .Case<arith::SIToFPOp, arith::UIToFPOp>(
              [&](auto) { return converted(op); })
          .Default([&](Operation *) -> std::optional<Wide> {
            if (!isa<arith::RemFOp>(op) &&
                !(isa<math::MathDialect>(op->getDialect()) &&
                  llvm::all_of(op->getOperandTypes(), isFloat)))
              return std::nullopt;
            SmallVector<Wide> operands;
            for (unsigned k = 0; k < op->getNumOperands(); ++k)
              operands.push_back(at(k));
            return evaluated(op, operands, type);
          });
  if (!out)
    return op->emitOpError("has no rule for its rounding error");
  wide[result] = *out;
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
    op->setOperand(
        0, stored(wide.at(op->getOperand(0)), typeAt(0), store.getIndices()));
    return success();
  }
  auto atomic = dyn_cast<memref::AtomicRMWOp>(op);
  if (atomic && (atomic.getKind() == arith::AtomicRMWKind::addf ||
                 atomic.getKind() == arith::AtomicRMWKind::mulf))
    return op->emitOpError("has no rule for its rounding error");
  if (atomic)
    op->setOperand(
        0, stored(wide.at(op->getOperand(0)), typeAt(0), atomic.getIndices()));
  else if (isa<arith::BitcastOp>(op) && takes)
    op->setOperand(0, stored(wide.at(op->getOperand(0)), typeAt(0), {}));
  else if (takes && !gives &&
           (isa<arith::CmpFOp, arith::FPToSIOp, arith::FPToUIOp, math::IsNaNOp,
                math::IsInfOp, math::IsFiniteOp>(op)))
    for (unsigned k = 0; k < op->getNumOperands(); ++k)
      op->setOperand(k, wide.at(op->getOperand(k)).value);
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

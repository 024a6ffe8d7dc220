// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions of MLIR's runner that give values: clocks, comparisons of memrefs,
// and memory as a device sees it.
#include "dialect/conversion/gpu/GpuHost.h"
#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/StringSwitch.h"

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

// Converts what MLIR's runner prints: calls of mlir_runner_utils and
// vector.print.

namespace {

/// A function of the runner, by its name.
struct Printer {
  ir::OutputKind kind;
  StringRef text;
};

/// "I32" of printMemrefI32 and the like.
bool isElementName(StringRef name) {
  return llvm::is_contained(
      {"I8", "I16", "I32", "I64", "F16", "BF16", "F32", "F64", "Ind"}, name);
}

std::optional<Printer> printerOf(StringRef name) {
  if (name.consume_front("printMemref")) {
    if (name.consume_front("Shape"))
      return isElementName(name)
                 ? std::optional<Printer>({ir::OutputKind::Shape, "Unranked "})
                 : std::nullopt;
    if (name.size() > 2 && name[0] >= '0' && name[0] <= '4' && name[1] == 'd')
      return isElementName(name.drop_front(2))
                 ? std::optional<Printer>({ir::OutputKind::Memref, ""})
                 : std::nullopt;
    return isElementName(name)
               ? std::optional<Printer>({ir::OutputKind::Memref, "Unranked "})
               : std::nullopt;
  }
  return llvm::StringSwitch<std::optional<Printer>>(name)
      .Cases({"printI64", "printU64", "printF32", "printF64", "printF16",
              "printBF16"},
             Printer{ir::OutputKind::Value, ""})
      .Case("printFlops", Printer{ir::OutputKind::Flops, ""})
      .Case("printNewline", Printer{ir::OutputKind::Text, "\n"})
      .Case("printOpen", Printer{ir::OutputKind::Text, "( "})
      .Case("printClose", Printer{ir::OutputKind::Text, " )"})
      .Case("printComma", Printer{ir::OutputKind::Text, ", "})
      .Default(std::nullopt);
}

/// The text, up to a zero, that a pointer to the start of a constant of the
/// module points to.
std::optional<StringRef> textAt(Value pointer) {
  if (auto start = pointer.getDefiningOp<LLVM::GEPOp>())
    if (start.getDynamicIndices().empty() &&
        llvm::all_of(start.getRawConstantIndices(),
                     [](int32_t index) { return index == 0; }))
      pointer = start.getBase();
  auto address = pointer.getDefiningOp<LLVM::AddressOfOp>();
  if (!address)
    return std::nullopt;
  auto global = SymbolTable::lookupNearestSymbolFrom<LLVM::GlobalOp>(
      address, address.getGlobalNameAttr());
  auto text = global ? dyn_cast_or_null<StringAttr>(global.getValueOrNull())
                     : StringAttr();
  if (!text || !text.getValue().contains('\0'))
    return std::nullopt;
  return text.getValue().split('\0').first;
}

std::optional<Printer> printerOf(func::CallOp call) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      call, call.getCalleeAttr());
  if (!callee || !callee.isExternal() || call.getNumResults() > 0)
    return std::nullopt;
  if (call.getCallee() == "printString" && call.getNumOperands() == 1) {
    std::optional<StringRef> text = textAt(call.getOperand(0));
    return text ? std::optional<Printer>({ir::OutputKind::Text, *text})
                : std::nullopt;
  }
  auto printer = printerOf(call.getCallee());
  const bool takesOne = printer && printer->kind != ir::OutputKind::Text;
  if (!printer || call.getNumOperands() != (takesOne ? 1 : 0))
    return std::nullopt;
  const bool isMemref =
      takesOne && isa<BaseMemRefType>(call.getOperand(0).getType());
  const bool wantsMemref = printer->kind == ir::OutputKind::Memref ||
                           printer->kind == ir::OutputKind::Shape;
  if (isMemref != wantsMemref || (printer->kind == ir::OutputKind::Flops &&
                                  !call.getOperand(0).getType().isF64()))
    return std::nullopt;
  return printer;
}

/// Prints a value by way of memory.
void printValue(OpBuilder &b, Location loc, Value value, Printer printer,
                bool isUnsigned) {
  auto vector = dyn_cast<VectorType>(value.getType());
  Type element = vector ? vector.getElementType() : value.getType();
  isUnsigned |= element.isIndex() || element.isUnsignedInteger();
  SmallVector<int64_t> shape;
  if (vector)
    shape.assign(vector.getShape().begin(), vector.getShape().end());
  const bool isSingle = vector && shape.empty(); // printed as one of a row
  if (isSingle)
    shape.push_back(1);
  Value memory =
      memref::AllocOp::create(b, loc, MemRefType::get(shape, element));
  if (isSingle)
    value = vector::BroadcastOp::create(b, loc, VectorType::get({1}, element),
                                        value);
  if (vector) {
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    vector::StoreOp::create(b, loc, value, memory,
                            SmallVector<Value>(shape.size(), zero));
  } else {
    memref::StoreOp::create(b, loc, value, memory, ValueRange());
  }
  ir::OutputOp::create(b, loc, printer.kind, printer.text, memory, isUnsigned);
}

void convert(vector::PrintOp op) {
  OpBuilder b(op);
  StringRef after;
  switch (op.getPunctuation()) {
  case vector::PrintPunctuation::NoPunctuation:
    break;
  case vector::PrintPunctuation::NewLine:
    after = "\n";
    break;
  case vector::PrintPunctuation::Comma:
    after = ", ";
    break;
  case vector::PrintPunctuation::Open:
    after = "( ";
    break;
  case vector::PrintPunctuation::Close:
    after = " )";
    break;
  }
  if (op.getSource())
    return printValue(b, op.getLoc(), op.getSource(),
                      {ir::OutputKind::Value, after}, false);
  // The punctuation follows a value; a text stands for itself.
  StringRef text = after;
  if (std::optional<StringAttr> literal = op.getStringLiteral())
    text = literal->getValue();
  ir::OutputOp::create(b, op.getLoc(), ir::OutputKind::Text, text, Value(),
                       false);
}

} // namespace

bool isPrint(Operation *op) {
  if (auto call = dyn_cast<func::CallOp>(op))
    return printerOf(call).has_value();
  auto print = dyn_cast<vector::PrintOp>(op);
  if (!print || !print.getSource())
    return bool(print);
  auto vector = dyn_cast<VectorType>(print.getPrintType());
  return !vector || !vector.isScalable();
}

void convertPrint(Operation *op) {
  OpBuilder b(op);
  if (auto print = dyn_cast<vector::PrintOp>(op)) {
    convert(print);
  } else {
    auto call = cast<func::CallOp>(op);
    const Printer printer = *printerOf(call);
    Location loc = op->getLoc();
    switch (printer.kind) {
    case ir::OutputKind::Value:
    case ir::OutputKind::Flops:
      printValue(b, loc, call.getOperand(0), printer,
                 call.getCallee() == "printU64");
      break;
    case ir::OutputKind::Text:
      ir::OutputOp::create(b, loc, printer.kind, printer.text, Value(), false);
      break;
    default:
      ir::OutputOp::create(b, loc, printer.kind, printer.text,
                           call.getOperand(0), false);
    }
  }
  SmallVector<Value> operands(op->getOperands());
  op->erase();
  // The address of a text that was printed is of no other use.
  for (Value operand : operands)
    while (Operation *from = operand.getDefiningOp()) {
      if (!isa<LLVM::GEPOp, LLVM::AddressOfOp>(from) || !from->use_empty())
        break;
      operand = from->getNumOperands() > 0 ? from->getOperand(0) : Value();
      from->erase();
      if (!operand)
        break;
    }
}

} // namespace mgpu::conversion

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The scf, cf and func dialects.
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/FunctionEmitter.h"
#include "kernels/cuda/KeepElements.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

/// Whether a variable for the two is worth having.
static bool anyUse(Value a, Value b) {
  return !a.use_empty() || !b.use_empty();
}

/// An innermost loop is unrolled as MGPU_UNROLL says.
void FunctionEmitter::writeUnroll(scf::ForOp op) {
  bool isInnermost =
      !op->walk([&](Operation *inner) {
           return inner != op.getOperation() && isa<LoopLikeOpInterface>(inner)
                      ? WalkResult::interrupt()
                      : WalkResult::advance();
         }).wasInterrupted();
  if (ir::hasMark(op, ir::Mark::WholeLoop)) {
    out.raw("#pragma unroll\n");
    return;
  }
  if (!isInnermost)
    return;
  out.raw("#if MGPU_UNROLL\n#pragma unroll mgpuUnroll\n#endif\n");
  kernel.hasUnroll = true;
}

LogicalResult FunctionEmitter::emit(scf::ForOp op) {
  SmallVector<Value> carried;
  SmallVector<Value> initial;
  for (auto [argument, result, init] : llvm::zip_equal(
           op.getRegionIterArgs(), op.getResults(), op.getInitArgs())) {
    if (!anyUse(argument, result))
      continue;
    StringRef name = sourceName(argument.getLoc());
    // One variable is the argument and, after the loop, the result.
    bool resultIsWide = isNarrow(argument) && !isNarrow(result);
    declare(resultIsWide ? result : Value(argument), name);
    if (resultIsWide)
      scalars[argument] = "(int)" + scalars[result];
    else
      bindComponents(result, variables(argument));
    carried.push_back(resultIsWide ? Value(result) : Value(argument));
    initial.push_back(init);
  }
  assign(carried, initial);
  Value iv = op.getInductionVar();
  auto upper = kernel.ranges.of(op.getUpperBound()),
       step = kernel.ranges.of(op.getStep());
  // The variable goes one step past the end.
  const bool isUnsigned = op.getUnsignedCmp();
  bool narrowLoop =
      !isUnsigned && isNarrow(iv) && isNarrow(op.getLowerBound()) && upper &&
      step && (upper->high.sext(128) + step->high.sext(128)).isSignedIntN(32);
  std::string type = isUnsigned   ? unsignedType(iv.getType())
                     : narrowLoop ? "int"
                                  : cType(iv.getType());
  const std::string cast = isUnsigned ? "(" + type + ")" : "";
  StringRef wish = sourceName(iv.getLoc());
  std::string name = names.fresh(wish.empty() ? "i" : wish);
  scalars[iv] = isNarrow(iv) && !narrowLoop ? "(int)" + name
                : isUnsigned ? "(" + cType(iv.getType()) + ")" + name
                             : name;
  std::optional<APInt> constant = op.getConstantStep();
  std::string next = constant && constant->isOne()
                         ? "++" + name
                         : name + " += " + use(op.getStep());
  writeUnroll(op);
  out.open("for (" + type + " " + name + " = " + cast +
           use(op.getLowerBound()) + "; " + name + " < " + cast +
           use(op.getUpperBound()) + "; " + next + ")");
  LogicalResult result = statements(*op.getBody());
  if (succeeded(result)) {
    auto yield = op.getBody()->getTerminator();
    out.at(yield->getLoc());
    SmallVector<Value> to, from;
    size_t k = 0;
    for (auto [argument, result, yielded] : llvm::zip_equal(
             op.getRegionIterArgs(), op.getResults(), yield->getOperands()))
      if (anyUse(argument, result)) {
        to.push_back(carried[k++]);
        from.push_back(yielded);
      }
    assign(to, from);
  }
  out.atNowhere();
  out.close();
  return result;
}

/// Gives what a region yields to the results of its operation that are read.
void FunctionEmitter::giveYields(Region &region, ResultRange results) {
  SmallVector<Value> to, from;
  for (auto [result, value] :
       llvm::zip_equal(results, region.front().getTerminator()->getOperands()))
    if (!result.use_empty()) {
      to.push_back(result);
      from.push_back(value);
    }
  assign(to, from);
}

LogicalResult FunctionEmitter::branchOfIf(scf::IfOp op, Region &region) {
  if (failed(statements(region.front())))
    return failure();
  out.at(region.front().getTerminator()->getLoc());
  giveYields(region, op.getResults());
  return success();
}

LogicalResult FunctionEmitter::emit(scf::IfOp op) {
  for (Value result : op.getResults())
    if (!result.use_empty())
      declare(result);
  out.open("if (" + use(op.getCondition()) + ")");
  LogicalResult result = branchOfIf(op, op.getThenRegion());
  out.atNowhere();
  if (succeeded(result) && !op.getElseRegion().empty()) {
    --out.depth;
    out.open("} else");
    result = branchOfIf(op, op.getElseRegion());
    out.atNowhere();
  }
  out.close();
  return result;
}

LogicalResult FunctionEmitter::emit(scf::WhileOp op) {
  Block &before = op.getBefore().front(), &after = op.getAfter().front();
  SmallVector<Value> carried, initial;
  for (auto [argument, init] :
       llvm::zip_equal(before.getArguments(), op.getInits()))
    if (!argument.use_empty()) {
      declare(argument);
      carried.push_back(argument);
      initial.push_back(init);
    }
  auto condition = cast<scf::ConditionOp>(before.getTerminator());
  // The condition hands values on: to the body, or out of the loop.
  SmallVector<Value> handed, values;
  for (auto [argument, result, value] : llvm::zip_equal(
           after.getArguments(), op.getResults(), condition.getArgs())) {
    if (!anyUse(argument, result))
      continue;
    bool isWide = isNarrow(argument) && !isNarrow(result);
    declare(isWide ? result : Value(argument),
            sourceName(argument.getLoc()).empty()
                ? sourceName(result.getLoc())
                : sourceName(argument.getLoc()));
    if (isWide)
      scalars[argument] = "(int)" + scalars[result];
    else
      bindComponents(result, variables(argument));
    handed.push_back(isWide ? Value(result) : Value(argument));
    values.push_back(value);
  }
  assign(carried, initial);
  out.open("while (true)");
  LogicalResult result = statements(before);
  if (succeeded(result)) {
    out.at(condition.getLoc());
    assign(handed, values);
    out.line("if (!(" + use(condition.getCondition()) + "))");
    ++out.depth;
    out.line("break;");
    --out.depth;
    result = statements(after);
  }
  if (succeeded(result)) {
    Operation *yield = after.getTerminator();
    out.at(yield->getLoc());
    SmallVector<Value> from;
    for (auto [argument, value] :
         llvm::zip_equal(before.getArguments(), yield->getOperands()))
      if (!argument.use_empty())
        from.push_back(value);
    assign(carried, from);
  }
  out.atNowhere();
  out.close();
  return result;
}

LogicalResult FunctionEmitter::emit(scf::IndexSwitchOp op) {
  for (Value result : op.getResults())
    if (!result.use_empty())
      declare(result);
  auto branch = [&](const std::string &label, Region &region) {
    out.open(label + ":");
    if (failed(statements(region.front())))
      return failure();
    giveYields(region, op.getResults());
    out.line("break;");
    out.atNowhere();
    out.close();
    return success();
  };
  out.open("switch (" + asLongLong(op.getArg()) + ")");
  LogicalResult result = success();
  for (auto [value, region] :
       llvm::zip_equal(op.getCases(), op.getCaseRegions()))
    if (succeeded(result))
      result =
          branch("case " + integerLiteral(APInt(64, uint64_t(value))), region);
  if (succeeded(result))
    result = branch("default", op.getDefaultRegion());
  out.close();
  return result;
}

LogicalResult FunctionEmitter::emit(scf::ExecuteRegionOp op) {
  for (Value result : op.getResults())
    if (!result.use_empty())
      declare(result);
  out.line("{");
  ++out.depth;
  LogicalResult result = statements(op.getRegion().front());
  if (succeeded(result))
    giveYields(op.getRegion(), op.getResults());
  out.close();
  return result;
}

LogicalResult FunctionEmitter::emit(func::CallOp op) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      op, op.getCalleeAttr());
  if (!callee || !kernel.functions.count(callee))
    return refuse(op, ": it calls a function without a body");
  SmallVector<std::string> arguments;
  if (kernel.needThread.count(callee))
    arguments.push_back("at");
  for (Value operand : op.getOperands())
    llvm::append_range(arguments, components(operand));
  std::string name = kernel.functions[callee];
  if (op.getNumResults() == 1 && !isa<MemRefType>(op.getResult(0).getType())) {
    bind(op.getResult(0), name + "(" + llvm::join(arguments, ", ") + ")");
    return success();
  }
  for (Value result : op.getResults()) {
    if (isa<MemRefType>(result.getType()))
      return refuse(op, " with a memref as its result");
    declare(result);
    arguments.push_back(scalars[result]);
  }
  out.line(name + "(" + llvm::join(arguments, ", ") + ");");
  return success();
}

/// A lambda of the region's block: its arguments to what it yields.
LogicalResult FunctionEmitter::emitCombiner(Region &region, Operation *op,
                                            std::string &name) {
  Block &block = region.front();
  name = names.fresh("combine");
  SmallVector<std::string> parameters;
  for (BlockArgument argument : block.getArguments()) {
    std::string parameter = freshName(argument, "x");
    scalars[argument] = parameter;
    parameters.push_back("const " + cType(argument.getType()) + " " +
                         parameter);
  }
  Type type = block.getArgument(0).getType();
  out.open("const auto " + name + " = [&](" + llvm::join(parameters, ", ") +
           ") -> " + cType(type));
  if (failed(statements(block)))
    return failure();
  out.at(block.getTerminator()->getLoc());
  out.line("return " + use(block.getTerminator()->getOperand(0)) + ";");
  out.atNowhere();
  out.close(";");
  return success();
}

LogicalResult FunctionEmitter::terminator(Operation *op) {
  out.at(op->getLoc());
  if (auto ret = dyn_cast<func::ReturnOp>(op)) {
    if (returned.empty()) {
      out.line(ret.getNumOperands() ? "return " + use(ret.getOperand(0)) + ";"
                                    : "return;");
      return success();
    }
    for (auto [name, value] : llvm::zip_equal(returned, ret.getOperands()))
      out.line(name + " = " + use(value) + ";");
    out.line("return;");
    return success();
  }
  return refuse(op);
}

LogicalResult FunctionEmitter::emit(cf::AssertOp op) {
  out.line("if (!(" + use(op.getArg()) + "))");
  ++out.depth;
  out.line("__trap(); // " + StringRef(quoted(op.getMsg())));
  --out.depth;
  return success();
}

LogicalResult FunctionEmitter::controlOp(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<scf::ForOp, scf::WhileOp, scf::IfOp, scf::IndexSwitchOp,
            scf::ExecuteRegionOp, func::CallOp, cf::AssertOp>(
          [&](auto each) { return emit(each); })
      .Default([&](Operation *) { return refuse(op); });
}

FailureOr<std::vector<FunctionEmitter::Parameter>>
FunctionEmitter::parameters(func::FuncOp f) {
  std::vector<Parameter> result;
  if (kernel.needThread.count(f))
    result.push_back({"const MgpuThread &", "at"});
  for (BlockArgument argument : f.getArguments()) {
    Type type = argument.getType();
    auto memref = dyn_cast<MemRefType>(type);
    Type element = memref ? memref.getElementType() : type;
    SmallVector<int64_t> strides;
    int64_t offset = 0;
    if (cType(element).empty() ||
        (memref && failed(memref.getStridesAndOffset(strides, offset))))
      return f.emitOpError("has an argument of type ")
             << type << ", which cannot be emitted as CUDA C++";
    if (isa<VectorType>(element))
      helper("vec");
    for (StringRef name : {"f16", "bf16", "f8e4m3", "f8e5m2"})
      if (cType(getElementTypeOrSelf(element)) == name)
        helper(name);
    std::string name = freshName(argument, "arg");
    SmallVector<std::string> parts;
    for (auto [k, spelled] : llvm::enumerate(componentTypes(argument))) {
      parts.push_back(k == 0 ? name : names.fresh(name + "_extent"));
      result.push_back({memref && k == 0 ? spelled : "const " + spelled + " ",
                        parts.back()});
    }
    bindComponents(argument, parts);
    if (memref && f.getName() == "entry")
      pointers[argument].divisor = facts::mostDivisor;
    // A kernel is given the buffer; a device function the first element.
    if (memref && f.getName() == "entry" && !ShapedType::isDynamic(offset)) {
      Pointer &pointer = pointers[argument];
      pointer.root = pointer.base;
      pointer.fromRoot = Extent(0);
      pointer.offset = Extent(offset);
    }
  }
  return result;
}

FailureOr<std::string> FunctionEmitter::signature(func::FuncOp f,
                                                  StringRef name) {
  auto list = parameters(f);
  if (failed(list))
    return failure();
  std::string result = "void";
  if (f.getNumResults() == 1)
    result = cType(f.getResultTypes()[0]);
  else
    for (Type type : f.getResultTypes()) {
      returned.push_back(names.fresh("result"));
      list->push_back({cType(type) + " &", returned.back()});
    }
  for (Type type : f.getResultTypes())
    if (cType(type).empty())
      return f.emitOpError("has a result of type ")
             << type << ", which cannot be emitted as CUDA C++";
  SmallVector<std::string> words;
  for (const Parameter &each : *list)
    words.push_back(each.type + each.name);
  return "static __device__ __forceinline__ " + result + " " + name.str() +
         "(" + llvm::join(words, ", ") + ")";
}

LogicalResult FunctionEmitter::body(func::FuncOp f) {
  assert(f.getBody().hasOneBlock() && "branches are structured by now");
  [[maybe_unused]] const unsigned depth = out.depth;
  if (failed(statements(f.getBody().front())))
    return failure();
  assert(out.depth == depth && !inPart && "what is opened is closed");
  Operation *end = f.getBody().front().getTerminator();
  if (end->getNumOperands() == 0)
    return isa<func::ReturnOp>(end) ? success() : refuse(end);
  return terminator(end);
}

} // namespace mgpu::kernels::cuda

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/spmd/Programs.h"
#include "dialect/conversion/stablehlo/Lowering.h"
#include "dialect/stablehlo/StablehloDialect.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_CONVERTSTABLEHLOTOLINALG
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// Whether 63 bits count the bytes of a tensor, whatever its elements are.
bool fitsMemory(ArrayRef<int64_t> shape) {
  int64_t bytes = 8;
  return llvm::is_contained(shape, 0) ||
         llvm::none_of(shape, [&](int64_t size) {
           return llvm::MulOverflow(bytes, size, bytes);
         });
}

/// Says why a kernel cannot hold `type`; empty where it can.
StringRef whyNotTaken(Type type) {
  if (auto tensor = dyn_cast<TensorType>(type)) {
    auto ranked = dyn_cast<RankedTensorType>(type);
    if (!ranked || !ranked.hasStaticShape())
      return "its shape is not static; export the program for the shapes it "
             "is run with";
    if (!fitsMemory(ranked.getShape()))
      return "it has more elements than any memory";
    type = tensor.getElementType();
  }
  if (isa<ComplexType>(type))
    return "complex numbers are not read by this version";
  if (isa<TupleType>(type))
    return "tuples are not read by this version; export the program without";
  if (isa<FloatType>(type) && type.getIntOrFloatBitWidth() <= 8 &&
      !isa<Float8E4M3FNType, Float8E5M2Type>(type))
    return "of floats of 8 bits and less, f8E4M3FN and f8E5M2 are read";
  StringRef dialect = type.getDialect().getNamespace();
  if (dialect == "quant")
    return "quantised numbers are not read by this version";
  if (dialect == "stablehlo")
    return "tokens are not read by this version";
  return "";
}

/// These take the bits of a number that are in memory.
bool dependsOnWidth(Operation *op) {
  return isa<stablehlo::BitcastConvertOp, stablehlo::PopulationCountOp,
             stablehlo::ClzOp, stablehlo::ShiftRightLogicalOp,
             stablehlo::ShiftRightArithmeticOp>(op);
}

LogicalResult checkTypes(Operation *op) {
  auto isNarrowTensor = [](Type type) {
    return isNarrow(getElementTypeOrSelf(type));
  };
  if (dependsOnWidth(op) &&
      (llvm::any_of(op->getOperandTypes(), isNarrowTensor) ||
       llvm::any_of(op->getResultTypes(), isNarrowTensor)))
    return ir::emitUnsupported(op)
           << "has integers of less than 8 bits, whose bits in memory it would "
              "show";
  auto check = [&](Type type) -> LogicalResult {
    StringRef why = whyNotTaken(type);
    if (why.empty())
      return success();
    return ir::emitUnsupported(op)
           << "has a value of type " << type << ": " << why;
  };
  for (Type type : op->getOperandTypes())
    if (failed(check(type)))
      return failure();
  for (Type type : op->getResultTypes())
    if (failed(check(type)))
      return failure();
  return success();
}

/// Ends the body with what it returns, and then what is expected of values.
void addResults(func::FuncOp function, Lowering &low) {
  Operation *end = function.back().getTerminator();
  SmallVector<Value> results = low.all(end->getOperands());
  unsigned first = results.size();
  for (const Expectation &each : low.expectations)
    results.append({each.found, each.expected});
  func::ReturnOp::create(low.b, results);
  SmallVector<Attribute> attributes;
  for (unsigned k = 0; k < first; ++k)
    attributes.push_back(low.b.getDictionaryAttr(function.getResultAttrs(k)));
  function.setFunctionType(FunctionType::get(
      function.getContext(), function.front().getArgumentTypes(),
      ValueRange(results).getTypes()));
  auto dictionary = [&](StringRef name, Attribute value) {
    return low.b.getDictionaryAttr(low.b.getNamedAttr(name, value));
  };
  for (const Expectation &each : low.expectations) {
    attributes.push_back(dictionary("mgpu.expect", each.attributes));
    attributes.push_back(dictionary("mgpu.expected", low.b.getUnitAttr()));
  }
  function.setAllResultAttrs(attributes);
}

/// Makes a body of linalg for `function`, and a signature without unsigned
/// integers.
LogicalResult convert(func::FuncOp function,
                      const llvm::StringMap<CustomKernel> &customs) {
  Block &old = function.front();
  Lowering low(function.getContext());
  low.customs = customs;
  Block *body = new Block;
  function.getBody().push_front(body);
  low.b.setInsertionPointToEnd(body);
  for (BlockArgument argument : old.getArguments()) {
    Value made =
        body->addArgument(signless(argument.getType()), argument.getLoc());
    low.b.setLoc(argument.getLoc());
    low.set(argument, low.kept(made, getElementTypeOrSelf(argument.getType())));
  }
  LogicalResult lowered = low.lowerBlock(old);
  if (succeeded(lowered)) {
    low.b.setLoc(old.getTerminator()->getLoc());
    addResults(function, low);
  }
  old.dropAllReferences();
  old.erase();
  return lowered;
}

struct ConvertStablehloToLinalg
    : impl::ConvertStablehloToLinalgBase<ConvertStablehloToLinalg> {
  using ConvertStablehloToLinalgBase::ConvertStablehloToLinalgBase;

  LogicalResult convertOne(func::FuncOp function, bool &isChanged) {
    if (!function.getBody().hasOneBlock())
      return success();
    bool isStablehlo = false;
    auto checked = function.walk([&](Operation *op) {
      if (!isOfStablehlo(op))
        return WalkResult::advance();
      isStablehlo = true;
      return failed(checkTypes(op)) ? WalkResult::interrupt()
                                    : WalkResult::advance();
    });
    if (checked.wasInterrupted())
      return failure();
    bool hasUnsigned = llvm::any_of(function.getArgumentTypes(), [](Type type) {
      return signless(type) != type;
    });
    if (!isStablehlo && !hasUnsigned)
      return success();
    isChanged = true;
    return convert(function, kernels);
  }

  void runOnOperation() override {
    bool isChanged = false;
    for (const std::string &each : customs) {
      auto [name, kernel] = StringRef(each).split('=');
      auto [file, kernelEntry] =
          kernel.rsplit(':'); // "registered ..." has none
      kernels[name] = {file.str(), kernelEntry.str()};
    }
    for (func::FuncOp function : programsOf(getOperation(), entry))
      if (failed(convertOne(function, isChanged)))
        return signalPassFailure();
    if (!isChanged)
      markAllAnalysesPreserved();
  }

  llvm::StringMap<CustomKernel> kernels; ///< of custom calls, by name
};

} // namespace

} // namespace mgpu::conversion

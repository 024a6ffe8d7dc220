// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/stablehlo/StablehloDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_PREPARESTABLEHLO
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

StringAttr exportedName(func::FuncOp entry, unsigned index) {
  for (StringRef name : {"jax.arg_info", "mhlo.arg_name"})
    if (auto text = entry.getArgAttrOfType<StringAttr>(index, name))
      return text;
  auto outer = dyn_cast<NameLoc>(entry.getArgument(index).getLoc());
  auto inner = outer ? dyn_cast<NameLoc>(outer.getChildLoc()) : NameLoc();
  return inner ? inner.getName() : StringAttr();
}

namespace {

/// A composite is a call of its decomposition.
void callDecomposition(stablehlo::CompositeOp op) {
  OpBuilder b(op);
  op->replaceAllUsesWith(
      func::CallOp::create(b, op.getLoc(), op.getDecomposition(),
                           op->getResultTypes(), op.getInputs()));
  op.erase();
}

/// The elements of a constant that stand at the end of the file, or were left
/// out of it; null of any other operation.
DenseResourceElementsAttr resourceOf(Operation *op) {
  if (!isa<arith::ConstantOp, stablehlo::ConstantOp>(op))
    return {};
  return op->getAttrOfType<DenseResourceElementsAttr>("value");
}

bool isElided(Operation *op) {
  DenseResourceElementsAttr resource = resourceOf(op);
  return resource && !resource.getRawHandle().getBlob();
}

/// The elements at the end of the file become those of the constant. There, a
/// truth value has a byte.
LogicalResult takeElements(Operation *op) {
  DenseResourceElementsAttr resource = resourceOf(op);
  AsmResourceBlob *blob =
      resource ? resource.getRawHandle().getBlob() : nullptr;
  if (!blob)
    return success();
  ShapedType type = resource.getType();
  ArrayRef<char> bytes = blob->getData();
  const Type element = type.getElementType();
  if (!element.isIntOrIndexOrFloat())
    return success(); // it is refused by its type
  const unsigned bits =
      element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  const uint64_t size = uint64_t(type.getNumElements()) * ((bits + 7) / 8);
  if (bytes.size() != size)
    return op->emitError() << "the elements '"
                           << resource.getRawHandle().getKey()
                           << "' at the end of the file have " << bytes.size()
                           << " bytes, and " << type << " has " << size;
  DenseElementsAttr elements;
  if (element.isInteger(1))
    elements = DenseElementsAttr::get(
        type, llvm::map_to_vector(bytes, [](char each) { return each != 0; }));
  else
    elements = DenseElementsAttr::getFromRawBuffer(type, bytes);
  op->setAttr("value", elements);
  return success();
}

/// Makes arguments of constants whose elements are not in the file: one for
/// each occurrence, handed down through calls.
class ElidedWeights {
public:
  explicit ElidedWeights(ModuleOp module) : module(module) {}
  /// Whether there are any.
  bool run(func::FuncOp entry) {
    const bool isAny = !weightsOf(entry).empty();
    nameArguments(entry);
    return isAny;
  }

private:
  using Weights = SmallVector<Operation *>;
  const Weights &weightsOf(func::FuncOp function);
  void nameArguments(func::FuncOp entry);

  ModuleOp module;
  llvm::MapVector<Operation *, Weights> done;
};

/// The weights that `function` needs, in order. Calls are not recursive in
/// programs that the inliner takes; a cycle ends here with what is known.
const ElidedWeights::Weights &ElidedWeights::weightsOf(func::FuncOp function) {
  auto [at, isNew] = done.try_emplace(function);
  if (!isNew || function.isExternal())
    return at->second;
  Weights own;
  SmallVector<std::pair<func::CallOp, Weights>> calls;
  function.walk([&](Operation *op) {
    if (isElided(op))
      own.push_back(op);
    auto call = dyn_cast<func::CallOp>(op);
    auto callee = call ? module.lookupSymbol<func::FuncOp>(call.getCallee())
                       : func::FuncOp();
    if (!callee)
      return;
    calls.push_back({call, weightsOf(callee)});
    for (Operation *weight : calls.back().second)
      if (!llvm::is_contained(own, weight))
        own.push_back(weight);
  });
  DenseMap<Operation *, Value> arguments;
  for (Operation *weight : own) {
    unsigned index = function.getNumArguments();
    (void)function.insertArgument(index, weight->getResult(0).getType(), {},
                                  weight->getLoc());
    arguments[weight] = function.getArgument(index);
    if (weight->getParentOfType<func::FuncOp>() == function)
      weight->getResult(0).replaceAllUsesWith(function.getArgument(index));
  }
  for (auto &[call, weights] : calls)
    for (Operation *weight : weights)
      call.getOperandsMutable().append(arguments[weight]);
  return done[function] = std::move(own);
}

/// By the constant's SSA name, with a number where that is taken.
void ElidedWeights::nameArguments(func::FuncOp entry) {
  llvm::StringSet<> taken;
  const Weights &weights = done[entry];
  unsigned given = entry.getNumArguments() - weights.size();
  auto nameOf = [&](unsigned index) {
    return ir::nameOf(entry.getArgument(index).getLoc(), std::to_string(index));
  };
  for (unsigned index = 0; index < given; ++index)
    taken.insert(nameOf(index));
  for (unsigned index = given; index < entry.getNumArguments(); ++index) {
    std::string name = nameOf(index);
    for (unsigned k = 1; !taken.insert(name).second; ++k)
      name = nameOf(index) + "_" + std::to_string(k);
    entry.setArgAttr(index, "mgpu.name",
                     StringAttr::get(entry.getContext(), name));
  }
}

/// Rewrites the attributes that exporters put on arguments as mgpu's.
LogicalResult takeAttributes(func::FuncOp entry) {
  OpBuilder b(entry.getContext());
  for (unsigned index = 0; index < entry.getNumArguments(); ++index) {
    auto alias =
        entry.getArgAttrOfType<IntegerAttr>(index, "tf.aliasing_output");
    if (alias) {
      const int64_t result = alias.getValue().trySExtValue().value_or(-1);
      if (result < 0 || result >= entry.getNumResults() ||
          entry.getResultTypes()[result] != entry.getArgumentTypes()[index])
        return entry.emitError()
               << "argument " << index << " has tf.aliasing_output = " << result
               << ", which is no result of its type";
      auto taken =
          entry.getResultAttrOfType<IntegerAttr>(result, spmd::aliasName);
      if (taken && taken.getInt() != index)
        return entry.emitError()
               << "arguments " << taken.getInt() << " and " << index
               << " are both donated to result " << result
               << "; a result takes the place of one argument, so remove one "
                  "tf.aliasing_output";
      entry.setResultAttr(result, spmd::aliasName, b.getI64IntegerAttr(index));
    }
    StringAttr name = exportedName(entry, index);
    if (name && !name.empty() && !entry.getArgAttr(index, "mgpu.name"))
      entry.setArgAttr(index, "mgpu.name", name);
  }
  return success();
}

struct PrepareStablehlo : impl::PrepareStablehloBase<PrepareStablehlo> {
  using PrepareStablehloBase::PrepareStablehloBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>(entry);
    if (!function || function.isExternal())
      return;
    bool isChanged = false;
    getOperation().walk([&](stablehlo::CompositeOp op) {
      isChanged = true;
      callDecomposition(op);
    });
    const bool isRead = !getOperation()
                             .walk([&](Operation *op) {
                               isChanged |= bool(resourceOf(op));
                               return WalkResult(takeElements(op));
                             })
                             .wasInterrupted();
    if (!isRead)
      return signalPassFailure();
    isChanged |= ElidedWeights(getOperation()).run(function);
    if (failed(takeAttributes(function)))
      return signalPassFailure();
    if (!isChanged)
      markAllAnalysesPreserved();
  }
};

} // namespace

} // namespace mgpu::conversion

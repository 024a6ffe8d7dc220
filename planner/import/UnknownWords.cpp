// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/UnknownWords.h"

#include "dialect/mgpu/MgpuDialect.h"
#include "support/Spelling.h"

#include "mlir/Dialect/MLProgram/IR/MLProgram.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"

#include <vector>

namespace mgpu::planner {

using namespace mlir;

static constexpr StringLiteral notRead = "which this version does not read";

bool saysNotRead(StringRef words) { return words.contains(notRead); }

/// The sentence that refuses what is of another dialect; `name` is
/// "dialect.operation", or a dialect.
static std::string foreign(StringRef what, StringRef name) {
  auto [dialect, rest] = name.split('.');
  std::string text = what.str();
  if (!rest.empty())
    text += " '" + name.str() + "'";
  return (text + " is of the dialect '" + dialect + "', " + notRead +
          "; lower it to linalg, tensor, arith, math and scf, or to mgpu "
          "(docs/limits.md)")
      .str();
}

/// A word without a dialect in front of it: `call` is `func.call` at the top of
/// a function alone, and unknown inside of scf.for.
static std::string aboutBareWord(StringRef word, MLIRContext *context) {
  if (word.starts_with("__global__") || word.starts_with("#include"))
    return "this is CUDA C++, not MLIR: give it as the `source` of a launch "
           "(docs/semantics.md), or call it from a graph built by calls "
           "(docs/builder.md)";
  // The dialects that programs use most come first.
  for (StringRef dialect : {"func", "mgpu", "arith", "memref", "scf", "gpu",
                            "math", "linalg", "tensor", "spmd", "vector"}) {
    const std::string full = (dialect + "." + word).str();
    if (RegisteredOperationName::lookup(full, context))
      return "there is no operation '" + word.str() + "' here: write '" + full +
             "', as an operation is named with its dialect";
  }
  return "there is no operation '" + word.str() +
         "': an operation is named as 'dialect.word' (docs/tutorial.md)";
}

/// An operation that a dialect which is read does not have, with the one that
/// may have been meant.
static std::string aboutUnknownOperation(StringRef name, MLIRContext *context) {
  if (!name.contains('.'))
    return aboutBareWord(name, context);
  auto [dialect, word] = name.split('.');
  std::vector<std::string> known;
  for (RegisteredOperationName each : context->getRegisteredOperations())
    if (each.getDialectNamespace() == dialect)
      known.push_back(each.stripDialect().str());
  return "there is no operation '" + name.str() + "'" +
         didYouMean(word.str(), known);
}

std::string aboutUnknown(StringRef message, MLIRContext *context) {
  if (message.consume_front("Dialect `")) {
    StringRef name = message.split("custom op '").second.split('\'').first;
    return name.contains('.') ? foreign("operation", name)
                              : aboutBareWord(name, context);
  }
  if (message.starts_with("custom op '") && message.contains("' is unknown"))
    return aboutUnknownOperation(message.split('\'').second.split('\'').first,
                                 context);
  return "";
}

std::string aboutMade(StringRef message, StringRef source) {
  source.consume_front("\"");
  const StringRef name = source.take_while(
      [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; });
  auto isOf = [](StringRef word, ArrayRef<StringRef> dialects) {
    return llvm::is_contained(dialects, word.split('.').first);
  };
  if (!isOf(name, {"stablehlo", "chlo", "mhlo"}) ||
      !message.consume_front("'") ||
      !isOf(message, {"affine", "arith", "bufferization", "func", "linalg",
                      "math", "memref", "mgpu", "scf", "tensor", "vector"}))
    return "";
  return ("'" + name + "' op has a form " + notRead +
          "; write it in other operations, or report it (docs/limits.md)")
      .str();
}

/// The dialect of what `attribute` or `type` has of one that is not read, and
/// which of both it is; empty where it has nothing of one.
template <typename Known>
static std::pair<StringRef, StringRef> foreignIn(Known known) {
  std::pair<StringRef, StringRef> found;
  known.walk([&](Type type) {
    if (auto opaque = dyn_cast<OpaqueType>(type))
      found = {"type", opaque.getDialectNamespace()};
  });
  known.walk([&](Attribute attribute) {
    if (auto opaque = dyn_cast<OpaqueAttr>(attribute))
      found = {"attribute", opaque.getDialectNamespace()};
  });
  return found;
}

/// `attributes` without what is of a dialect that is not read.
static DictionaryAttr withoutForeign(DictionaryAttr attributes) {
  NamedAttrList kept;
  for (NamedAttribute each : attributes)
    if (foreignIn(each.getValue()).first.empty())
      kept.append(each);
  return kept.getDictionary(attributes.getContext());
}

static ArrayAttr withoutForeign(ArrayAttr ofEach) {
  SmallVector<Attribute> kept;
  for (auto each : ofEach.getAsRange<DictionaryAttr>())
    kept.push_back(withoutForeign(each));
  return ArrayAttr::get(ofEach.getContext(), kept);
}

/// An error where `op` or a type of its values is of a dialect that is not
/// read.
static LogicalResult checkForeign(Operation *op) {
  if (!op->isRegistered() ||
      isa<ml_program::MLProgramDialect>(op->getDialect()))
    return emitError(op->getLoc())
           << foreign("operation", op->getName().getStringRef());
  auto check = [&](Type type, Location location) -> LogicalResult {
    auto [what, dialect] = foreignIn(type);
    if (what.empty())
      return success();
    return emitError(location) << foreign(what, dialect);
  };
  if (auto function = dyn_cast<FunctionOpInterface>(op))
    if (failed(check(function.getFunctionType(), op->getLoc())))
      return failure();
  for (Type type : op->getResultTypes())
    if (failed(check(type, op->getLoc())))
      return failure();
  for (Region &region : op->getRegions())
    for (BlockArgument argument : region.getArguments())
      if (failed(check(argument.getType(), argument.getLoc())))
        return failure();
  return success();
}

LogicalResult dropForeign(ModuleOp module) {
  for (auto global :
       llvm::make_early_inc_range(module.getOps<ml_program::GlobalOp>()))
    if (SymbolTable::symbolKnownUseEmpty(global, module))
      global.erase();
  return failure(module
                     ->walk([](Operation *op) {
                       if (failed(checkForeign(op)))
                         return WalkResult::interrupt();
                       op->setDiscardableAttrs(
                           withoutForeign(op->getDiscardableAttrDictionary()));
                       auto function = dyn_cast<FunctionOpInterface>(op);
                       if (!function)
                         return WalkResult::advance();
                       if (ArrayAttr all = function.getArgAttrsAttr())
                         function.setArgAttrsAttr(withoutForeign(all));
                       if (ArrayAttr all = function.getResAttrsAttr())
                         function.setResAttrsAttr(withoutForeign(all));
                       return WalkResult::advance();
                     })
                     .wasInterrupted());
}

void dropFacts(ModuleOp module) {
  module.getBody()->walk([](Operation *op) {
    for (NamedAttribute each : llvm::to_vector(op->getDiscardableAttrs()))
      if (ir::isFactOfPasses(each.getName()))
        op->removeDiscardableAttr(each.getName());
  });
}

} // namespace mgpu::planner

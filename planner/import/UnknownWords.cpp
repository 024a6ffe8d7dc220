// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/UnknownWords.h"

#include "support/Spelling.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

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

/// The name in quotes that ends just before a place of the text: that of an
/// operation in generic form.
static StringRef quotedBefore(StringRef text, Location location) {
  auto place = dyn_cast<FileLineColLoc>(location);
  for (unsigned line = 1; place && line < place.getLine(); ++line)
    text = text.split('\n').second;
  if (!place)
    return "";
  text = text.take_front(place.getColumn());
  return text.rsplit('"').first.rsplit('"').second;
}

/// A word without a dialect in front of it: `call` is `func.call` at the top of
/// a function alone, and unknown inside of scf.for.
static std::string aboutBareWord(StringRef word, MLIRContext *context) {
  if (word.starts_with("__global__") || word.starts_with("#include"))
    return "this is CUDA C++, not MLIR: give it as the `source` of a launch "
           "(docs/semantics.md), or call it from a graph built by calls "
           "(docs/builder.md)";
  // Those that programs use most come first.
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

std::string aboutUnknown(StringRef message, StringRef text, Location location) {
  MLIRContext *context = location.getContext();
  if (message.consume_front("Dialect `")) {
    StringRef name = message.split("custom op '").second.split('\'').first;
    return name.contains('.') ? foreign("operation", name)
                              : aboutBareWord(name, context);
  }
  if (message.starts_with("operation being parsed with an unregistered"))
    return foreign("operation", quotedBefore(text, location));
  // `!"tt"<"ptr<f32>">` type created with ..., #"tt"<"x"> : 'none' attribute
  if (auto [what, rest] = message.split(" created with unregistered ");
      !rest.empty())
    return foreign(what.ends_with("attribute") ? "attribute" : "type",
                   what.split('"').second.split('"').first);
  if (message.starts_with("custom op '") && message.contains("' is unknown"))
    return aboutUnknownOperation(message.split('\'').second.split('\'').first,
                                 context);
  return "";
}

/// Says so at `location` where a name is of the mgpu dialect and none of
/// `known`. The spmd dialect verifies its own.
static LogicalResult checkNames(DictionaryAttr attributes, StringRef of,
                                ArrayRef<std::string> known,
                                Location location) {
  if (!attributes)
    return success();
  for (NamedAttribute each : attributes) {
    StringRef name = each.getName();
    if (!name.starts_with("mgpu.") || llvm::is_contained(known, name))
      continue;
    return emitError(location) << "no " << of << " has an attribute '" << name
                               << "'" << didYouMean(name.str(), known);
  }
  return success();
}

/// Drops what passes of ours note for later ones, where a text has it: nothing
/// has judged it, and the passes find it again. Other names of operations are
/// errors.
static LogicalResult takeOperationAttributes(Operation *op) {
  static const std::vector<std::string> ofUsers = {"mgpu.name"};
  // What users of mgpu-opt see of these is not what they write.
  static constexpr StringLiteral ofPasses[] = {"mgpu.awaits_others",
                                               "mgpu.axis",
                                               "mgpu.b_turned",
                                               "mgpu.body",
                                               "mgpu.cluster",
                                               "mgpu.device_only",
                                               "mgpu.dynamic_shared_bytes",
                                               "mgpu.forwarded",
                                               "mgpu.fragment",
                                               "mgpu.head",
                                               "mgpu.in_order",
                                               "mgpu.instruction",
                                               "mgpu.launch_group",
                                               "mgpu.matmul",
                                               "mgpu.meaning",
                                               "mgpu.one_device",
                                               "mgpu.product",
                                               "mgpu.sentence",
                                               "mgpu.sparse",
                                               "mgpu.sparse_operands",
                                               "mgpu.subgroup",
                                               "mgpu.warpgroup_product",
                                               "mgpu.whole",
                                               "mgpu.workgroup"};
  for (NamedAttribute each : llvm::to_vector(op->getDiscardableAttrs())) {
    StringRef name = each.getName();
    if (!name.starts_with("mgpu.") || llvm::is_contained(ofUsers, name))
      continue;
    if (!llvm::is_contained(ofPasses, name))
      return op->emitOpError() << "has no attribute '" << name << "'"
                               << didYouMean(name.str(), ofUsers);
    op->removeDiscardableAttr(each.getName());
  }
  return success();
}

LogicalResult checkAttributeNames(ModuleOp module) {
  const std::vector<std::string> ofArguments = {"mgpu.name", "mgpu.role"};
  const std::vector<std::string> ofResults = {"mgpu.name", "mgpu.expect",
                                              "mgpu.expected"};
  if (module->hasAttr("mgpu.device_config"))
    return emitError(module.getLoc())
           << "the devices are not an attribute of the module: write the "
              "operation `mgpu.device_config @config "
              "#mgpu.device_config<numDevices = N>` in it";
  if (failed(checkNames(module->getAttrDictionary(), "module", {},
                        module.getLoc())))
    return failure();
  const auto taken = module.getBody()->walk([](Operation *op) {
    return failed(takeOperationAttributes(op)) ? WalkResult::interrupt()
                                               : WalkResult::advance();
  });
  if (taken.wasInterrupted())
    return failure();
  for (auto function : module.getOps<FunctionOpInterface>()) {
    for (unsigned k = 0; k < function.getNumArguments(); ++k)
      if (failed(checkNames(function.getArgAttrDict(k), "argument", ofArguments,
                            function.isExternal()
                                ? function.getLoc()
                                : function.getArgument(k).getLoc())))
        return failure();
    for (unsigned k = 0; k < function.getNumResults(); ++k)
      if (failed(checkNames(function.getResultAttrDict(k), "result", ofResults,
                            function.getLoc())))
        return failure();
  }
  return success();
}

} // namespace mgpu::planner

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/UnknownWords.h"

#include "dialect/mgpu/MgpuDialect.h"
#include "support/Spelling.h"

#include "mlir/Dialect/MLProgram/IR/MLProgram.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"

#include <initializer_list>
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

using llvm::StringRef;

namespace {

/// An attribute that was a string and is one of an enumeration.
struct Spelling {
  std::initializer_list<StringRef> operations;
  StringRef attribute, type;
};

const Spelling spellings[] = {
    {{"\"gpu.block_dim\"", "\"gpu.block_id\"", "\"gpu.grid_dim\"",
      "\"gpu.thread_id\""},
     "dimension",
     "dim"},
    {{"\"gpu.all_reduce\""}, "op", "all_reduce_op"},
};

/// The line with `attribute = "word"` as `attribute = #gpu<type word>`; empty
/// where it has none.
std::string respellLine(StringRef line, const Spelling &spelling) {
  if (llvm::none_of(spelling.operations, [&](StringRef operation) {
        return line.contains(operation);
      }))
    return "";
  for (size_t at = line.find(spelling.attribute); at != StringRef::npos;
       at = line.find(spelling.attribute, at + 1)) {
    StringRef rest = line.substr(at + spelling.attribute.size()).ltrim();
    if (!rest.consume_front("="))
      continue;
    rest = rest.ltrim();
    if (!rest.consume_front("\""))
      continue;
    auto [word, after] = rest.split('"');
    if (word.empty() || !llvm::all_of(word, [](char c) {
          return llvm::isAlnum(c) || c == '_';
        }))
      continue;
    return (line.take_front(at) + spelling.attribute + " = #gpu<" +
            spelling.type + " " + word + ">" + after)
        .str();
  }
  return "";
}

/// The elements of `tensor<2x3xi1>` that `type` begins with; 0 for another
/// type.
uint64_t booleansOf(StringRef type) {
  if (!type.consume_front("tensor<"))
    return 0;
  uint64_t count = 1, size = 0;
  while (!type.consumeInteger(10, size)) {
    count = llvm::SaturatingMultiply(count, size);
    if (!type.consume_front("x"))
      return 0;
  }
  return type.starts_with("i1>") ? count : 0;
}

/// The digits of a byte for each element as those of a bit for each.
std::string packed(StringRef digits) {
  std::string bytes((digits.size() / 2 + 7) / 8, '\0');
  for (size_t k = 0; k < digits.size() / 2; ++k)
    if (digits.substr(2 * k, 2) != "00")
      bytes[k / 8] = char(bytes[k / 8] | 1 << k % 8);
  return llvm::toHex(bytes);
}

/// Empty where no constant of i1 has a byte for each element.
std::string packBooleans(StringRef text) {
  constexpr StringRef opening = "dense<\"0x";
  std::string made;
  size_t copied = 0;
  for (size_t at = text.find(opening); at != StringRef::npos;
       at = text.find(opening, at + 1)) {
    const size_t begin = at + opening.size();
    StringRef rest = text.substr(begin);
    StringRef digits = rest.take_while(llvm::isHexDigit);
    rest = rest.drop_front(digits.size());
    if (!rest.consume_front("\">"))
      continue;
    rest = rest.ltrim();
    if (!rest.consume_front(":") || digits.size() < 4 ||
        digits.size() % 2 != 0 || booleansOf(rest.ltrim()) != digits.size() / 2)
      continue;
    made += text.slice(copied, begin);
    made += packed(digits);
    copied = begin + digits.size();
  }
  return copied == 0 ? "" : made + text.substr(copied).str();
}

/// Operations of the gpu dialect.
Respelled respellOperations(StringRef text) {
  Respelled made;
  if (!text.contains("\"gpu."))
    return made;
  llvm::SmallVector<StringRef> lines;
  text.split(lines, '\n');
  for (auto [number, line] : llvm::enumerate(lines)) {
    std::string changed;
    for (const Spelling &spelling : spellings)
      if (changed.empty())
        changed = respellLine(line, spelling);
    if (!changed.empty())
      made.lines.push_back(unsigned(number) + 1);
    made.text += changed.empty() ? line.str() : changed;
    if (number + 1 < lines.size())
      made.text += '\n';
  }
  if (made.lines.empty())
    made.text.clear();
  return made;
}

} // namespace

Respelled respell(StringRef text) {
  Respelled made = respellOperations(text);
  std::string other = packBooleans(made.text.empty() ? text : made.text);
  if (!other.empty())
    made.text = std::move(other);
  return made;
}

} // namespace mgpu::planner

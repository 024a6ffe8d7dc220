// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parsing with names: MLIR forgets SSA names, but users know their buffers and
// arguments by them.
#include "planner/import/BuildDag.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

namespace mgpu::planner {

using namespace mlir;

static StringRef nameAt(llvm::SMRange range) {
  StringRef text(range.Start.getPointer(),
                 range.End.getPointer() - range.Start.getPointer());
  text.consume_front("%");
  return text.take_until([](char c) { return c == ':' || c == '#'; });
}

OwningOpRef<ModuleOp> parseProgram(const std::string &path,
                                   MLIRContext &context,
                                   function_ref<void(Diagnostic &)> seen) {
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(path, &error);
  if (!file) {
    emitError(UnknownLoc::get(&context)) << error;
    return nullptr;
  }
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  // The handler shows the source line under each message.
  SourceMgrDiagnosticHandler showLines(sources, &context);
  ScopedDiagnosticHandler tee(&context, [&](Diagnostic &diagnostic) {
    if (seen)
      seen(diagnostic);
    return failure(); // on to showLines
  });

  Block parsed;
  AsmParserState names;
  if (failed(parseAsmSourceFile(sources, &parsed, &context, &names)))
    return nullptr;
  Location location = FileLineColLoc::get(&context, path, 1, 1);
  // As mlir::parseSourceFile does: a lone module is the module itself.
  OwningOpRef<ModuleOp> module;
  if (llvm::hasSingleElement(parsed) && isa<ModuleOp>(parsed.front())) {
    module = cast<ModuleOp>(parsed.front());
    (*module)->remove();
  } else {
    module = ModuleOp::create(location);
    module->getBody()->getOperations().splice(module->getBody()->begin(),
                                              parsed.getOperations());
  }
  if (failed(verify(*module)))
    return nullptr;

  for (AsmParserState::OperationDefinition &op : names.getOpDefs()) {
    if (op.resultGroups.empty() || op.op == *module)
      continue;
    StringRef name = nameAt(op.resultGroups[0].definition.loc);
    bool isNumber = !name.empty() && llvm::isDigit(name.front());
    if (!name.empty() && !isNumber)
      op.op->setLoc(
          NameLoc::get(StringAttr::get(&context, name), op.op->getLoc()));
  }
  for (auto function : module->getOps<FunctionOpInterface>()) {
    if (function.isExternal())
      continue;
    const AsmParserState::BlockDefinition *block =
        names.getBlockDef(&function.getFunctionBody().front());
    if (!block)
      continue;
    for (auto [argument, definition] :
         llvm::zip(function.getArguments(), block->arguments))
      argument.setLoc(
          NameLoc::get(StringAttr::get(&context, nameAt(definition.loc)),
                       argument.getLoc()));
  }
  return module;
}

} // namespace mgpu::planner

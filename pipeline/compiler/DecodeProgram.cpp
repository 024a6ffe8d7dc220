// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bytecode becomes text in a process of its own: MLIR's reader of bytecode
// trusts what it reads, and ends or hangs its process on some files.
#include "dialect/vhlo/Vhlo.h"
#include "pipeline/compiler/MlirCompiler.h"
#include "planner/import/UnknownWords.h"
#include "support/ChildProcess.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/VersionTuple.h"

#include <fmt/format.h>

namespace mgpu::pipeline {

using namespace mlir;

namespace {

StringRef textOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

/// In the child.
Outcome<Bytes> printBytecode(std::span<const std::byte> bytecode) {
  DialectRegistry registry = programDialects();
  vhlo::registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.allowUnregisteredDialects();
  std::string first;
  ScopedDiagnosticHandler keep(&context, [&](Diagnostic &diagnostic) {
    if (first.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error)
      first = diagnostic.str();
    return success();
  });
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  Block read;
  const llvm::MemoryBufferRef buffer(textOf(bytecode), "");
  if (failed(readBytecodeFile(buffer, &read,
                              ParserConfig(&context, /*verify=*/false))))
    return fault(FaultKind::Refused, first);
  if (llvm::hasSingleElement(read) && isa<ModuleOp>(read.front())) {
    module = cast<ModuleOp>(read.front());
    (*module)->remove();
  } else {
    module->getBody()->getOperations().splice(module->getBody()->begin(),
                                              read.getOperations());
  }
  if (failed(vhlo::makeStablehlo(*module)))
    return fault(FaultKind::Refused, first);
  std::string text;
  llvm::raw_string_ostream out(text);
  module->print(out, OpPrintingFlags().enableDebugInfo());
  Bytes answer;
  append(answer, std::as_bytes(std::span(text)));
  return answer;
}

/// The version of VHLO that a file was written in, if it was.
std::optional<llvm::VersionTuple> vhloVersion(StringRef bytecode) {
  // Behind the magic bytes and a version of MLIR's, the writer says who it is.
  auto [before, after] = bytecode.take_front(64).split("StableHLO_v");
  llvm::VersionTuple version;
  if (before.size() > 8 ||
      version.tryParse(after.take_until([](char c) { return c == 0; })))
    return std::nullopt;
  return version;
}

} // namespace

Result<std::string> MlirCompiler::decode(std::span<const std::byte> bytecode,
                                         const std::string &name) const {
  const StringRef bytes = textOf(bytecode);
  auto version = vhloVersion(bytes);
  // The table of names ends each with a zero.
  if (!version && bytes.contains(StringRef("stablehlo\0", 10)) &&
      !bytes.contains(StringRef("\0vhlo\0", 6)))
    return fail(ErrorKind::Unsupported,
                fmt::format("'{}' is StableHLO in the bytecode of one build of "
                            "MLIR, which has no version that others could know "
                            "it by: write what jax.export's serialize() gives, "
                            "VHLO (stablehlo.serialize_portable_artifact), or "
                            "text",
                            name));
  llvm::VersionTuple newest;
  (void)newest.tryParse(vhlo::newest);
  const bool isNewer = version && *version > newest;
  const std::string of =
      version ? fmt::format(" (VHLO {}{})", version->getAsString(),
                            isNewer ? fmt::format("; this version reads up to "
                                                  "{}, which exporters can be "
                                                  "asked for",
                                                  vhlo::newest.str())
                                    : "")
              : "";
  auto refuse = [&](ErrorKind kind, const std::string &why) {
    return fail(kind,
                fmt::format("'{}' cannot be decoded{}: {}", name, of, why));
  };
  if (isNewer && version->getMajor() > newest.getMajor())
    return refuse(ErrorKind::Unsupported, "its major version is not known");
  MGPU_TRY_ASSIGN(ChildProcess reader,
                  ChildProcess::start(
                      printBytecode,
                      {(uint64_t(4) << 30) + uint64_t(64) * bytecode.size()}));
  auto text = reader.ask(bytecode, 5 + double(bytecode.size()) / 1e5);
  if (text)
    return std::string(reinterpret_cast<const char *>(text->data()),
                       text->size());
  const Fault &why = text.error();
  if (why.kind != FaultKind::Refused)
    return refuse(ErrorKind::Invalid,
                  fmt::format("it is damaged; MLIR's reader {}", why.what));
  return refuse(isNewer || planner::saysNotRead(why.what)
                    ? ErrorKind::Unsupported
                    : ErrorKind::Invalid,
                why.what);
}

} // namespace mgpu::pipeline

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ImportText.h"

#include "dialect/mgpu/MgpuDialect.h"
#include "kernels/lower/KernelDialects.h"

#include <algorithm>

namespace mgpu::planner {

using namespace mlir;

static MLIRContext &sharedContext() {
  static DialectRegistry registry = [] {
    DialectRegistry filled;
    filled.insert<ir::MgpuDialect>();
    kernels::registerHostEmitDialects(filled);
    return filled;
  }();
  static MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  return context;
}

std::string Imported::text() const {
  std::string all = error ? "failed: " + error->message + "\n" : "";
  for (const std::string &line : errors)
    all += "error: " + line + "\n";
  for (const std::string &line : warnings)
    all += "warning: " + line + "\n";
  return all;
}

static size_t count(const std::vector<std::string> &lines,
                    std::string_view part) {
  return size_t(std::count_if(lines.begin(), lines.end(), [&](auto &line) {
    return line.find(part) != std::string::npos;
  }));
}
size_t Imported::countWarnings(std::string_view part) const {
  return count(warnings, part);
}
size_t Imported::countErrors(std::string_view part) const {
  return count(errors, part);
}

Imported importText(const std::string &text, const ImportOptions &options) {
  MLIRContext &context = sharedContext();
  Imported imported;
  ScopedDiagnosticHandler collect(&context, [&](Diagnostic &diagnostic) {
    bool isError = diagnostic.getSeverity() == DiagnosticSeverity::Error;
    if (isError || diagnostic.getSeverity() == DiagnosticSeverity::Warning)
      (isError ? imported.errors : imported.warnings)
          .push_back(diagnostic.str());
  });
  auto parsed =
      parseProgramText(text, "test.mlir", context, {.entry = options.entry});
  if (!parsed) {
    imported.error = parsed.error();
    return imported;
  }
  auto built = buildDag(*parsed->module, options);
  if (built)
    imported.program = std::move(*built);
  else
    imported.error = built.error();
  return imported;
}

std::string program(const std::string &body, const std::string &arguments) {
  std::string text =
      "mgpu.device_config @config #mgpu.device_config<numDevices = 2>\n"
      "func.func @main(" +
      arguments + ") {\n";
  text += "  %cm1 = arith.constant -1 : index\n";
  for (const char *number : {"0", "1", "2", "8", "32", "64"})
    text += std::string("  %c") + number + " = arith.constant " + number +
            " : index\n";
  text += "  %one = arith.constant 1.0 : f32\n"
          "  %host = mgpu.get_device %cm1 : !mgpu.device\n"
          "  %d0 = mgpu.get_device %c0 : !mgpu.device\n"
          "  %d1 = mgpu.get_device %c1 : !mgpu.device\n"
          "  %s0 = mgpu.create_stream %d0 : !mgpu.device -> !mgpu.stream\n"
          "  %t0 = mgpu.create_stream %d0 : !mgpu.device -> !mgpu.stream\n"
          "  %s1 = mgpu.create_stream %d1 : !mgpu.device -> !mgpu.stream\n"
          "  %comm = mgpu.create_communicator %d0, %d1 : !mgpu.device, "
          "!mgpu.device -> !mgpu.communicator\n";
  for (const char *name : {"a", "a2", "a3", "b", "b2", "b3"})
    text += std::string("  %") + name + " = mgpu.alloc %d" +
            (name[0] == 'a' ? "0" : "1") +
            " : !mgpu.device -> memref<64xf32>\n";
  return text + body + "  return\n}\n";
}

std::string launch(const std::string &device, const std::string &stream,
                   const std::string &body) {
  return "  mgpu.launch " + device + " grid(%c1) block(%c64)" +
         (stream.empty() ? "" : " stream " + stream) +
         " {\n    %i = gpu.thread_id x\n" + body + "  }\n";
}

std::vector<const DagNode *> kernelNodes(const Dag &dag) {
  std::vector<const DagNode *> found;
  for (const DagNode &node : dag.nodes)
    if (std::holds_alternative<KernelCall>(node.work))
      found.push_back(&node);
  return found;
}

} // namespace mgpu::planner

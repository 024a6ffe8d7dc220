// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/AsyncRegions.h"
#include "dialect/conversion/ExchangeCost.h"
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/TransformSchedule.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/MgpuDialect.h"
#include "dialect/vhlo/Vhlo.h"
#include "kernels/lower/KernelDialects.h"
#include "pipeline/compiler/MlirCompiler.h"
#include "planner/cost/LatencyEstimator.h"
#include "planner/import/BuildDag.h"
#include "planner/import/HostValue.h"
#include "planner/import/ScalarArguments.h"
#include "planner/import/UnknownWords.h"
#include "support/ChildProcess.h"
#include "support/FileIO.h"
#include "support/Sha256.h"
#include "support/Spelling.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MLProgram/IR/MLProgram.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/VersionTuple.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

namespace mgpu::pipeline {

using namespace mlir;

DialectRegistry programDialects() {
  DialectRegistry registry;
  registry.insert<ir::MgpuDialect, ml_program::MLProgramDialect>();
  kernels::registerHostEmitDialects(registry);
  conversion::registerTensorDialects(registry);
  conversion::registerScheduleDialects(registry);
  conversion::registerAsyncDialect(registry);
  return registry;
}

namespace {

// Times of exchanges by the planner's model, for passes that choose by them.

using namespace planner;
using conversion::Exchange;

static DeviceId deviceOf(int64_t number) { return DeviceId{int32_t(number)}; }

static CollectiveKind kindOf(Exchange::Kind kind) {
  switch (kind) {
  case Exchange::Kind::AllToAll:
    return CollectiveKind::AllToAll;
  case Exchange::Kind::AllGather:
    return CollectiveKind::AllGather;
  case Exchange::Kind::ReduceScatter:
    return CollectiveKind::ReduceScatter;
  case Exchange::Kind::Broadcast:
    return CollectiveKind::Broadcast;
  case Exchange::Kind::Permute:
    return CollectiveKind::Permute;
  case Exchange::Kind::AllReduce:
  case Exchange::Kind::Copies:
    return CollectiveKind::AllReduce;
  }
  return CollectiveKind::AllReduce;
}

/// A DAG of one node, which is what the model is asked about.
static Dag dagOf(DagNode node) {
  Dag dag;
  dag.nodes.push_back(std::move(node));
  for (DeviceId device : dag.nodes[0].devices)
    dag.numDevices = std::max(dag.numDevices, uint32_t(device.value) + 1);
  return dag;
}

static double copyUs(const LatencyEstimator &times,
                     const Exchange::Copy &copy) {
  const Box box = Box::flat(0, copy.bytes);
  DagNode node;
  node.devices = {deviceOf(std::min(copy.from, copy.to))};
  if (copy.from != copy.to)
    node.devices.push_back(deviceOf(std::max(copy.from, copy.to)));
  node.work = CopyCall{BufferId{0}, BufferId{1}, box, box};
  Dag dag = dagOf(std::move(node));
  dag.buffers.resize(2);
  dag.buffers[0].device = deviceOf(copy.from);
  dag.buffers[1].device = deviceOf(copy.to);
  return times.durationUs(dag, NodeId{0});
}

static double collectiveUs(const LatencyEstimator &times,
                           const Exchange &exchange,
                           const std::vector<int64_t> &group) {
  DagNode node;
  for (int64_t device : group)
    node.devices.push_back(deviceOf(device));
  std::ranges::sort(node.devices);
  OpaqueCall call;
  call.isCollective = true;
  call.kind = kindOf(exchange.kind);
  call.bytes = uint64_t(exchange.bytes);
  call.group = uint32_t(group.size());
  node.work = call;
  return times.durationUs(dagOf(std::move(node)), NodeId{0});
}

/// More than any exchange takes.
static constexpr double lastResortUs = 1e12;

conversion::ExchangeCost
/// By the planning model (planner/schedule/list/Schedulers.h): collectives of
/// groups without a common device run beside each other, and each device takes
/// part in one copy at a time, so its copies take the sum of their times. Null
/// for a null `times`. With `oneDevice`, where one device stands for all,
/// copies between devices are the last resort: they differ by device.
exchangeCost(std::shared_ptr<const LatencyEstimator> times, bool oneDevice) {
  if (!times)
    return nullptr;
  return [times = std::move(times), oneDevice](const Exchange &exchange) {
    if (oneDevice && !exchange.copies.empty())
      return lastResortUs;
    double most = 0;
    for (const std::vector<int64_t> &group : exchange.groups)
      most = std::max(most, collectiveUs(*times, exchange, group));
    std::map<int64_t, double> busyUs; // by device
    for (const Exchange::Copy &copy : exchange.copies) {
      const double us = copyUs(*times, copy);
      busyUs[copy.from] += us;
      if (copy.to != copy.from)
        busyUs[copy.to] += us;
      most = std::max({most, busyUs[copy.from], busyUs[copy.to]});
    }
    return most;
  };
}

const char *severityName(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Error:
    return "error";
  case DiagnosticSeverity::Warning:
    return "warning";
  case DiagnosticSeverity::Note:
    return "note";
  case DiagnosticSeverity::Remark:
    return "remark";
  }
  return "error";
}

/// The products that GPUs compute by a text of ours. A library's are launches
/// of their own: its epilogues take the sums before they are rounded, so their
/// bits would be others.
planner::FuseProducts productsToFuse(const ImportOptions &options) {
  const Variants &variants = options.variants;
  if (variants.isAsked(Variant::CublasLt))
    return planner::FuseProducts::None;
  // Every product that cuBLASLt takes has the form mma.
  const bool leavesNarrow =
      variants.uses(Variant::CublasLt) && !variants.uses(Variant::Mma);
  return leavesNarrow ? planner::FuseProducts::Wide
                      : planner::FuseProducts::All;
}

/// Whether a launch of the program is a matmul that a library may compute.
bool hasMatmuls(ModuleOp module) {
  return module
      .walk([](ir::LaunchOp launch) {
        return ir::productOf(launch) ? WalkResult::interrupt()
                                     : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The values of scalars alone: other arguments are bound at run time.
std::map<std::string, std::string> scalarsOf(ModuleOp module,
                                             const ImportOptions &options) {
  std::map<std::string, std::string> scalars;
  auto entry = module.lookupSymbol<func::FuncOp>(options.entry);
  if (!entry || entry.isExternal())
    return scalars;
  for (BlockArgument argument : entry.getArguments()) {
    if (isa<MemRefType>(argument.getType()))
      continue;
    unsigned index = argument.getArgNumber();
    std::string name = planner::argumentName(entry, index);
    for (const std::string &key : {name, std::to_string(index)})
      if (auto at = options.arguments.find(key); at != options.arguments.end())
        scalars.emplace(key, at->second);
  }
  return scalars;
}

/// Usage for an --arg that no argument of the entry has: said before what has
/// no value, which a misspelt name is the likely cause of.
Result<void> checkArgumentNames(ModuleOp module, const ImportOptions &options) {
  auto entry = module.lookupSymbol<func::FuncOp>(options.entry);
  if (!entry || entry.isExternal())
    return {};
  std::vector<std::string> known;
  for (unsigned k = 0; k < entry.getNumArguments(); ++k)
    known.push_back(planner::argumentName(entry, k));
  for (const auto &[key, value] : options.arguments) {
    bool isKnown = llvm::is_contained(known, key);
    for (size_t k = 0; k < known.size(); ++k)
      isKnown |= key == std::to_string(k);
    if (!isKnown)
      return fail(
          ErrorKind::Usage,
          fmt::format("--arg {}: no such argument; there are: {}{}", key,
                      known.empty() ? "none"
                                    : fmt::format("{}", fmt::join(known, ", ")),
                      didYouMean(key, known)));
  }
  return {};
}

std::string hashOf(const LibraryFunction &function) {
  Sha256 hash;
  hash.addField(function.symbol);
  if (auto bytes = readFile(function.file))
    hash.addField(
        {reinterpret_cast<const char *>(bytes->data()), bytes->size()});
  return hash.hex();
}

/// The kernels of custom calls by whole paths, each with its entry. Errors:
/// Usage where the name of a call cannot be that of a function.
Result<std::map<std::string, std::string>>
wholeCustoms(const std::map<std::string, std::string> &customs) {
  std::map<std::string, std::string> whole;
  for (const auto &[name, kernel] : customs) {
    const auto library = libraryFunction(name, kernel);
    if (kernel == "registered" || library) {
      whole[name] = "registered" + (library ? " " + hashOf(*library) : "");
      continue;
    }
    const size_t colon = kernel.rfind(':');
    const bool hasEntry =
        colon != kernel.npos &&
        isIdentifier(std::string_view(kernel).substr(colon + 1));
    if (!hasEntry && !isIdentifier(name))
      return fail(
          ErrorKind::Usage,
          fmt::format("--custom {0}={1}: no function has the name '{0}': "
                      "say which one it is, --custom '{0}={1}:ENTRY'",
                      name, kernel));
    if (kernel.empty() || colon == 0 || kernel.ends_with(':'))
      return fail(ErrorKind::Usage,
                  fmt::format("--custom {}={}: expected FILE.cu, "
                              "FILE.cu:ENTRY, LIB.so:FUNCTION or registered",
                              name, kernel));
    const auto path =
        std::filesystem::absolute(hasEntry ? kernel.substr(0, colon) : kernel);
    whole[name] =
        path.string() + ":" + (hasEntry ? kernel.substr(colon + 1) : name);
  }
  return whole;
}

planner::ImportOptions importOptions(const ImportOptions &options,
                                     ModuleOp module) {
  planner::ImportOptions import;
  import.entry = options.entry;
  import.scalars = scalarsOf(module, options);
  import.roles = options.roles;
  import.nodeLimit = options.nodeLimit;
  import.rollFrom = options.rollFrom;
  import.costs = options.costs;
  import.racesAreErrors = options.racesAreErrors;
  // The memory that a library needs follows from the product it is asked for.
  import.kernelTexts =
      options.kernelTexts || (options.productTexts && hasMatmuls(module));
  return import;
}

/// `customs` are whole, with an entry each.
planner::ParseOptions parseOptions(const ImportOptions &options,
                                   std::map<std::string, std::string> customs) {
  return {options.text.get(),
          options.entry,
          options.nodeLimit,
          options.fuse,
          productsToFuse(options),
          options.fuse && !options.exact,
          int64_t(options.devices),
          options.meshes,
          options.arguments,
          options.roles,
          options.reportSharding,
          options.schedule,
          options.remat,
          options.isQuiet,
          options.shardings,
          options.keepText,
          exchangeCost(options.times, options.oneDevice),
          options.oneDevice,
          std::move(customs),
          options.replicas,
          options.partitions};
}

/// https://no-color.org: the variable is set and not empty.
void obeyNoColor() {
  if (const char *plain = std::getenv("NO_COLOR"); plain && *plain)
    llvm::errs().enable_colors(false);
}

} // namespace

Result<LoadedProgram>
MlirCompiler::importProgram(const ImportOptions &options,
                            std::vector<Message> *messages) const {
  MLIRContext context(programDialects(), MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  MGPU_TRY_ASSIGN(auto customs, wholeCustoms(options.customs));
  obeyNoColor();
  // Opens the file again to show the line under each message.
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler showLines(
      sources, &context, options.isQuiet ? llvm::nulls() : llvm::errs());
  uint32_t numErrors = 0;
  auto record = [&](Diagnostic &diagnostic) {
    numErrors += diagnostic.getSeverity() == DiagnosticSeverity::Error;
    if (messages) {
      messages->push_back({severityName(diagnostic.getSeverity()),
                           ir::describeLocation(diagnostic.getLocation()),
                           diagnostic.str()});
      for (Diagnostic &note : diagnostic.getNotes())
        messages->push_back(
            {"note", ir::describeLocation(note.getLocation()), note.str()});
    }
  };
  auto countErrors = [&](Error error) {
    if (numErrors > 0)
      error.message = fmt::format(
          "'{}': {} found; see above", options.file,
          numErrors == 1 ? "1 error" : fmt::format("{} errors", numErrors));
    return fail(std::move(error));
  };
  // A text made of a file is not the file, whose lines have other numbers.
  const bool isMade = options.text && options.file != "-";
  auto parsed = planner::parseProgram(
      isMade ? options.file + " as StableHLO" : options.file, context, record,
      parseOptions(options, std::move(customs)));
  if (!parsed && (numErrors == 0 || parsed.error().kind != ErrorKind::Invalid))
    return countErrors(std::move(parsed.error()));
  if (!parsed)
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' is not a valid program; the messages above "
                            "say where",
                            options.file));
  ScopedDiagnosticHandler count(&context, [&](Diagnostic &diagnostic) {
    record(diagnostic);
    return failure(); // on to showLines
  });
  ModuleOp module = *parsed->module;
  ImportOptions ofEntry = options;
  ofEntry.entry = parsed->entry;
  MGPU_TRY(checkArgumentNames(module, ofEntry));
  auto imported = planner::buildDag(module, importOptions(ofEntry, module));
  if (!imported)
    return countErrors(std::move(imported.error()));
  LoadedProgram program;
  static_cast<planner::Program &>(program) = std::move(*imported);
  program.numRaces = imported->numRaces;
  program.notFused = std::move(parsed->notFused);
  program.changed = std::move(parsed->changed);
  program.sharding = std::move(parsed->sharding);
  program.shardings = std::move(parsed->shardings);
  program.meshes = std::move(parsed->meshes);
  program.schedules = std::move(parsed->schedules);
  program.deviceCall = std::move(parsed->deviceCall);
  return program;
}

// Bytecode becomes text in a process of its own: MLIR's reader of bytecode
// trusts what it reads, and ends or hangs its process on some files.

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

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parsing with names: MLIR forgets SSA names, but users know their buffers and
// arguments by them.
#include "planner/import/BuildDag.h"

#include "planner/import/Annotations.h"
#include "planner/import/CheckText.h"
#include "planner/import/InlinedSize.h"
#include "planner/import/ScalarArguments.h"
#include "planner/import/SourceNames.h"
#include "planner/import/UnknownWords.h"

#include "dialect/conversion/AsyncRegions.h"
#include "dialect/conversion/SpmdPhases.h"
#include "dialect/conversion/TransformSchedule.h"
#include "dialect/mgpu/Diagnostics.h"
#include "support/FileIO.h"
#include "support/Spelling.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
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

/// Whether the op's result is a buffer of its own, or a tensor, which may get
/// one: nobody asks for the names of other values, and a location for each
/// would cost as much as parsing it.
static bool makesBuffer(Operation &op) {
  Type type = op.getResult(0).getType();
  return isa<TensorType>(type) ||
         (isa<BaseMemRefType>(type) &&
          llvm::none_of(op.getOperandTypes(), llvm::IsaPred<BaseMemRefType>));
}

/// Names buffers and arguments by the text at their locations; false when one
/// of them cannot be found there.
static bool nameFromText(ModuleOp module, StringRef text) {
  SourceText source(text);
  std::vector<std::pair<Operation *, StringRef>> found;
  bool complete = true;
  module->walk([&](Operation *op) {
    if (op->getNumResults() == 0 || !makesBuffer(*op))
      return;
    StringRef name = source.nameOf(op);
    complete &= !name.empty();
    found.push_back({op, name});
  });
  std::vector<std::pair<BlockArgument, StringRef>> arguments;
  for (auto function : module.getOps<FunctionOpInterface>()) {
    if (function.isExternal())
      continue;
    for (BlockArgument argument : function.getArguments()) {
      complete &= source.from(argument.getLoc()).starts_with("%");
      arguments.push_back({argument, source.nameOf(argument)});
    }
  }
  if (!complete)
    return false;
  for (auto [op, name] : found)
    setName(op, name);
  for (auto [argument, name] : arguments)
    setName(argument, name);
  return true;
}

/// Parses and verifies, which the parser does before what it read is handed
/// out.
static OwningOpRef<ModuleOp> parseModule(llvm::SourceMgr &sources,
                                         const std::string &path,
                                         MLIRContext &context,
                                         AsmParserState *names) {
  Block parsed;
  ParserConfig config(&context, /*verifyAfterParse=*/true);
  if (failed(parseAsmSourceFile(sources, &parsed, config, names)))
    return nullptr;
  Location location = FileLineColLoc::get(&context, path, 1, 1);
  // A lone module is the module itself, as mlir::parseSourceFile has it.
  OwningOpRef<ModuleOp> module;
  if (llvm::hasSingleElement(parsed) && isa<ModuleOp>(parsed.front())) {
    module = cast<ModuleOp>(parsed.front());
    (*module)->remove();
  } else {
    module = ModuleOp::create(location);
    module->getBody()->getOperations().splice(module->getBody()->begin(),
                                              parsed.getOperations());
  }
  return module;
}

namespace {

/// Collects the texts of the passes' remarks.
class RemarkTexts : public remark::detail::MLIRRemarkStreamerBase {
public:
  explicit RemarkTexts(ParsedProgram &program) : program(program) {}
  void streamOptimizationRemark(const remark::detail::Remark &found) override {
    const llvm::StringRef category = found.getCategoryName();
    auto &texts = category == "spmd-partition-tensors" ? program.sharding
                  : category == "mpmd-schedule"        ? program.schedules
                  : category == "spmd-name-attention"  ? program.changed
                                                       : program.notFused;
    texts.push_back(found.getArgs().front().val);
  }

private:
  ParsedProgram &program;
};

} // namespace

static void setOptions(conversion::SpmdPipelineOptions &spmd, ModuleOp module,
                       const ParseOptions &options) {
  spmd.entry = options.entry;
  spmd.devices = options.devices;
  for (const auto &[name, mesh] : options.meshes)
    spmd.assign += name + "=" + mesh + ",";
  spmd.schedule = options.schedule;
  spmd.remat = options.remat;
  spmd.attention = options.attention;
  spmd.tosa = conversion::hasTosa(module);
  for (const auto &[name, kernel] : options.customs)
    spmd.customs.push_back(name + "=" + kernel);
}

/// Usage for a kernel of a custom call that the program does not make.
static Result<void>
checkCustoms(ModuleOp module, const std::map<std::string, std::string> &given) {
  if (given.empty())
    return {};
  for (StringRef own :
       {"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape",
        "annotate_device_placement", "check.eq", "check.expect_eq",
        "check.expect_close", "check.expect_almost_eq"})
    if (given.contains(own.str()))
      return fail(ErrorKind::Usage, "--custom " + own.str() +
                                        ": a call of this name has a meaning "
                                        "of its own");
  std::vector<std::string> called;
  module.walk([&](Operation *op) {
    auto name = op->getAttrOfType<StringAttr>("call_target_name");
    if (name && !llvm::is_contained(called, name.getValue()))
      called.push_back(name.str());
  });
  for (const auto &[name, kernel] : given)
    if (!llvm::is_contained(called, name))
      return fail(ErrorKind::Usage,
                  "--custom " + name + ": the program has no such call; " +
                      (called.empty()
                           ? "it has none"
                           : "it calls " + llvm::join(called, ", ")) +
                      didYouMean(name, called));
  return {};
}

/// Makes a program of devices and buffers of a function over tensors. Passes on
/// what users wrote are verified one by one, later ones with the launches that
/// they lead to (makeLaunches).
static LogicalResult lowerTensors(ModuleOp module, const ParseOptions &parse) {
  conversion::SpmdPipelineOptions options;
  setOptions(options, module, parse);
  PassManager passes(module.getContext());
  conversion::addSpmdFrontEnds(passes, options, parse.exchangeCost,
                               conversion::hasOtherFunctions(module));
  if (failed(passes.run(module)))
    return failure();
  PassManager placing(module.getContext());
  placing.enableVerifier(false);
  conversion::addSpmdPlacement(placing, options);
  if (failed(placing.run(module)))
    return failure();
  if (auto entry = module.lookupSymbol<func::FuncOp>(options.entry);
      entry && parse.oneDevice) {
    module.getContext()->getOrLoadDialect<ir::MgpuDialect>();
    ir::setMark(entry, ir::Mark::OneDevice);
  }
  PassManager bufferizing(module.getContext());
  bufferizing.enableVerifier(false);
  conversion::addSpmdBufferization(bufferizing, options,
                                   conversion::hasInsertions(module));
  return bufferizing.run(module);
}

/// Makes launches of all device work. Launches made of tensors are verified at
/// the end alone.
static LogicalResult
makeLaunches(ModuleOp module, const conversion::LaunchPipelineOptions &options,
             bool isMade) {
  PassManager passes(module.getContext());
  passes.enableVerifier(!isMade);
  conversion::buildLaunchPipeline(passes, options);
  return failure(failed(passes.run(module)) ||
                 (isMade && failed(verify(module))));
}

/// Expands a program before its kind is looked at.
static LogicalResult expandFirst(ModuleOp module) {
  if (conversion::hasSchedule(module) &&
      failed(conversion::applySchedule(module)))
    return failure();
  return success(!conversion::hasAsyncRegions(module) ||
                 succeeded(conversion::inlineAsyncRegions(module)));
}

namespace {

/// The first error of the passes, and its kind. An error of operations that
/// they made of StableHLO's is reworded for these.
class PassErrors {
public:
  PassErrors(MLIRContext &context, StringRef text)
      : source(text),
        first(&context, [this](Diagnostic &found) { return see(found); }),
        reword(&context, [this](Diagnostic &found) { return say(found); }) {}

  Error error{ErrorKind::Invalid, ""};

private:
  LogicalResult see(Diagnostic &diagnostic) {
    if (!error.message.empty() ||
        diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return failure(); // on to handlers made before it
    error.message = diagnostic.str();
    if (ir::isUnsupported(diagnostic) || saysNotRead(error.message))
      error.kind = ErrorKind::Unsupported;
    else if (ir::isAbsent(diagnostic))
      error.kind = ErrorKind::Absent;
    return failure();
  }
  LogicalResult say(Diagnostic &diagnostic) {
    auto place = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>();
    if (!place || diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return failure();
    const std::string words =
        aboutMade(diagnostic.str(), source.from(Location(place)));
    if (words.empty())
      return failure();
    emitError(place) << words;
    return success();
  }

  SourceText source;
  ScopedDiagnosticHandler first, reword; ///< the later one sees all first
};

} // namespace

/// The entry function: the one of that name, or the one public function of a
/// program that has no @main, where no other was asked for.
static std::string entryOf(ModuleOp module, const std::string &asked) {
  if (asked != "main" || module.lookupSymbol<func::FuncOp>(asked))
    return asked;
  SmallVector<func::FuncOp> entries;
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic() && !function.isExternal())
      entries.push_back(function);
  return entries.size() == 1 ? entries.front().getName().str() : asked;
}

/// Applies what the caller says of devices and of how arguments are cut.
static Result<void> cutArguments(ParsedProgram &program, func::FuncOp entry,
                                 const ParseOptions &options) {
  const GivenShardings &given = options.given;
  MGPU_TRY(applyShardings(*program.module, entry, given));
  // A search for shardings begins with none.
  if (!given.mesh.empty() && given.cuts.empty() && !options.keepText)
    return fail(ErrorKind::Usage, "--mesh " + given.mesh +
                                      ": nothing is cut over it: say how "
                                      "arguments are, --shard NAME=AXIS");
  if (entry && !entry.isExternal())
    program.shardings = shardingsOf(*program.module, entry);
  if (options.keepText && !program.shardings.grid.empty())
    program.shardings.text = programText(*program.module);
  return {};
}

/// Each device gets arguments and results of its own.
static LogicalResult makePerDevice(ParsedProgram &program,
                                   const ParseOptions &options) {
  auto entry = program.module->lookupSymbol<func::FuncOp>(options.entry);
  if (!entry || entry.isExternal())
    return program.module->emitError()
           << "has no function '" << options.entry << "' to call";
  FailureOr<std::string> call =
      conversion::callPerDevice(entry, options.replicas, options.partitions);
  if (succeeded(call))
    program.deviceCall = std::move(*call);
  return call;
}

/// Runs the passes of dialect/conversion on a module that was parsed of `text`.
static Result<ParsedProgram> lower(OwningOpRef<ModuleOp> module, StringRef text,
                                   const ParseOptions &given) {
  if (!module)
    return fail(ErrorKind::Invalid, "it does not parse");
  ParseOptions options = given;
  options.entry = entryOf(*module, given.entry);
  auto entry = module->lookupSymbol<func::FuncOp>(options.entry);
  MGPU_TRY(checkMeshNames(*module, entry, options.meshes));
  MGPU_TRY(checkSchedule(entry, options.schedule, options.remat));
  ParsedProgram program{std::move(module), options.entry, {}};
  MGPU_TRY(checkCustoms(*program.module, options.customs));
  MGPU_TRY(cutArguments(program, entry, options));
  program.meshes = meshesOf(entry);
  MLIRContext &context = *program.module->getContext();
  remark::RemarkCategories categories;
  categories.missed = "mgpu-fuse-launches";
  categories.passed = "spmd-name-attention";
  categories.analysis = options.reportSharding
                            ? "mpmd-schedule|spmd-partition-tensors"
                            : "mpmd-schedule";
  (void)remark::enableOptimizationRemarks(
      context, std::make_unique<RemarkTexts>(program),
      std::make_unique<remark::RemarkEmittingPolicyAll>(), categories);
  const PassErrors errors(context, text);
  LogicalResult result =
      checkInlinedSize(*program.module, options.entry, options.nodeLimit);
  if (options.replicas > 0 && succeeded(result)) {
    result = makePerDevice(program, options);
    entry = program.module->lookupSymbol<func::FuncOp>(options.entry);
  }
  if (succeeded(result))
    result = expandFirst(*program.module);
  const bool isGpu = conversion::isGpuProgram(*program.module, options.entry);
  const bool isTensor =
      succeeded(result) && entry && conversion::isTensorProgram(entry);
  if (options.oneDevice && !isTensor && succeeded(result))
    return fail(ErrorKind::Unsupported,
                "it names each of its devices; one device stands for all in "
                "functions over tensors alone");
  if (isTensor) {
    setRoles(entry, options.roles);
    foldScalars(entry, options.scalars);
    result = lowerTensors(*program.module, options);
  }
  if (isGpu && succeeded(result)) {
    if (entry) {
      setRoles(entry, options.roles);
      foldScalars(entry, options.scalars);
    }
    conversion::GpuPipelineOptions gpu;
    gpu.entry = options.entry;
    gpu.devices = options.devices;
    PassManager passes(&context);
    conversion::buildGpuPipeline(passes, gpu);
    result = passes.run(*program.module);
  }
  conversion::LaunchPipelineOptions pipeline;
  pipeline.entry = options.entry;
  pipeline.fuse = options.fuse;
  pipeline.products = options.products;
  if (succeeded(result))
    result = makeLaunches(*program.module, pipeline, isTensor);
  context.setRemarkEngine(nullptr);
  if (failed(result))
    return fail(errors.error);
  return program;
}

static OwningOpRef<ModuleOp> parseNamed(llvm::SourceMgr &sources,
                                        const std::string &path,
                                        MLIRContext &context) {
  StringRef text =
      sources.getMemoryBuffer(sources.getMainFileID())->getBuffer();
  auto parse = [&](AsmParserState *names) {
    return parseModule(sources, path, context, names);
  };
  // A state costs half as much as the parse itself, so it is only made where
  // locations do not say where in the text a value is defined.
  if (!text.contains("loc(")) {
    OwningOpRef<ModuleOp> module = parse(nullptr);
    if (!module || nameFromText(*module, text))
      return module;
  }
  AsmParserState names;
  OwningOpRef<ModuleOp> module = parse(&names);
  if (!module)
    return nullptr;
  for (AsmParserState::OperationDefinition &op : names.getOpDefs()) {
    if (op.resultGroups.empty() || op.op == *module || !makesBuffer(*op.op))
      continue;
    setName(op.op, nameAt(op.resultGroups[0].definition.loc));
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
      setName(argument, nameAt(definition.loc));
  }
  return module;
}

/// LLVM maps regular files and knows `-`, but would read a device, or a pipe
/// that never ends, until memory is full.
static std::unique_ptr<llvm::MemoryBuffer> openProgram(const std::string &path,
                                                       std::string *error) {
  using FileType = llvm::sys::fs::file_type;
  llvm::sys::fs::file_status status;
  bool special =
      !llvm::sys::fs::status(path, status) &&
      llvm::is_contained(
          {FileType::block_file, FileType::character_file, FileType::fifo_file},
          status.type());
  if (!special)
    return openInputFile(path, error);
  auto data = readFile(path);
  if (!data) {
    *error = data.error().message;
    return nullptr;
  }
  return llvm::MemoryBuffer::getMemBufferCopy(
      StringRef(reinterpret_cast<const char *>(data->data()), data->size()),
      path);
}

Result<ParsedProgram> parseProgram(const std::string &path,
                                   MLIRContext &context,
                                   function_ref<void(Diagnostic &)> seen,
                                   const ParseOptions &options) {
  llvm::SourceMgr sources;
  // The handler shows the source line under each message.
  SourceMgrDiagnosticHandler showLines(
      sources, &context, options.isQuiet ? llvm::nulls() : llvm::errs());
  ScopedDiagnosticHandler tee(&context, [&](Diagnostic &diagnostic) {
    if (seen)
      seen(diagnostic);
    return failure(); // on to showLines
  });
  bool isUnsupported = false;
  ScopedDiagnosticHandler reword(&context, [&](Diagnostic &diagnostic) {
    isUnsupported |= saysNotRead(diagnostic.str());
    std::string words = aboutUnknown(diagnostic.str(), &context);
    if (words.empty())
      return failure(); // on to those before it
    emitError(diagnostic.getLocation()) << words;
    return success();
  });
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> file =
      options.text ? llvm::MemoryBuffer::getMemBufferCopy(
                         *options.text, path == "-" ? "<stdin>" : path)
                   : openProgram(path, &error);
  if (!file)
    return fail(ErrorKind::Invalid, error);
  const StringRef text = file->getBuffer();
  MGPU_TRY(checkProgramText({text.data(), text.size()}, path));
  const Respelled respelled = respell(text);
  if (!respelled.text.empty())
    file = llvm::MemoryBuffer::getMemBufferCopy(respelled.text, path);
  const StringRef parsed = file->getBuffer(); // `sources` keeps it
  sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  for (unsigned line : respelled.lines)
    emitRemark(FileLineColLoc::get(&context, path, line, 1))
        << "this spelling of 2019 is read as the one shown";
  context.allowUnregisteredDialects();
  OwningOpRef<ModuleOp> module = parseNamed(sources, path, context);
  context.allowUnregisteredDialects(false);
  if (module && failed(dropForeign(*module)))
    module = nullptr;
  if (!module && isUnsupported)
    return fail(
        ErrorKind::Unsupported,
        "it has operations of dialects that this version does not read");
  if (module)
    dropFacts(*module);
  return lower(std::move(module), parsed, options);
}

Result<ParsedProgram> parseProgramText(StringRef text, const std::string &name,
                                       MLIRContext &context,
                                       const ParseOptions &options) {
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, name),
                             llvm::SMLoc());
  return lower(parseNamed(sources, name, context), text, options);
}

} // namespace mgpu::planner

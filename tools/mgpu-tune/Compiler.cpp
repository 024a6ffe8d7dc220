// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/Compiler.h"

#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/MgpuDialect.h"
#include "kernels/compile/TextCache.h"
#include "kernels/cuda/CudaEmitter.h"
#include "kernels/cuda/LibraryMatmul.h"
#include "kernels/cuda/Matmul.h"
#include "kernels/cuda/SourceKernel.h"
#include "kernels/cuda/TensorMatmul.h"
#include "kernels/cuda/WgmmaMatmul.h"
#include "kernels/host/HostEmitter.h"
#include "kernels/lower/KernelDialects.h"
#include "pipeline/compiler/KernelBuild.h"
#include "pipeline/compiler/SpaceOf.h"
#include "planner/import/BuildDag.h"
#include "planner/import/HostValue.h"
#include "planner/import/SourceNames.h"
#include "support/Parallel.h"
#include "tools/mgpu-tune/ProductForms.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/SourceMgr.h"

#include <fmt/format.h>

namespace mgpu::tune {

using namespace mlir;

namespace {

DialectRegistry programDialects() {
  DialectRegistry registry;
  registry.insert<ir::MgpuDialect>();
  kernels::registerHostEmitDialects(registry);
  return registry;
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

/// Those that cards compute by a text of ours. A library's are launches of
/// their own: its epilogues take the sums before they are rounded, so their
/// bits would be others.
planner::FuseProducts productsToFuse(const Options &options) {
  if (options.tensorCores == "cublaslt")
    return planner::FuseProducts::None;
  // Every product that cuBLASLt takes has the form mma.
  if (isByRecord(options.tensorCores) &&
      !asksForForm(options.tensorCores, "mma"))
    return planner::FuseProducts::Wide;
  return options.tensorCores.empty() ? planner::FuseProducts::Wide
                                     : planner::FuseProducts::All;
}

/// Whether a launch of the program is a matmul that a library may compute.
bool hasMatmuls(ModuleOp module) {
  return module
      .walk([](ir::LaunchOp launch) {
        return launch->hasAttr("mgpu.matmul") ? WalkResult::interrupt()
                                              : WalkResult::advance();
      })
      .wasInterrupted();
}

} // namespace

Result<Program> importProgram(const Options &options, bool racesAreErrors,
                              std::vector<Message> *messages,
                              bool kernelTexts) {
  MLIRContext context(programDialects(), MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  // Opens the file again to show the line under each message.
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler showLines(sources, &context, llvm::errs());
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
  auto parsed = planner::parseProgram(
      options.file, context, record,
      {options.entry, options.fuse, productsToFuse(options)});
  if (!parsed && parsed.error().kind == ErrorKind::Unsupported)
    return countErrors(std::move(parsed.error()));
  if (!parsed)
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' is not a valid program; the messages above "
                            "say where",
                            options.file));
  ModuleOp module = *parsed->module;
  ScopedDiagnosticHandler count(&context, [&](Diagnostic &diagnostic) {
    record(diagnostic);
    return failure(); // on to showLines
  });
  planner::ImportOptions import;
  import.entry = options.entry;
  import.roles = options.roles;
  import.nodeLimit = options.nodeLimit;
  import.rollFrom = options.rollFrom;
  import.racesAreErrors = racesAreErrors;
  // What a library needs of a machine's memory is told by what it is asked for.
  import.kernelTexts =
      kernelTexts || (options.target.starts_with("sim:") && hasMatmuls(module));
  // Only scalars matter to the importer; the others are bound at run time.
  if (auto entry = module.lookupSymbol<func::FuncOp>(options.entry))
    for (BlockArgument argument : entry.isExternal() ? ArrayRef<BlockArgument>()
                                                     : entry.getArguments()) {
      if (isa<MemRefType>(argument.getType()))
        continue;
      unsigned index = argument.getArgNumber();
      std::string name =
          planner::nameOf(argument.getLoc(), std::to_string(index));
      if (auto given = entry.getArgAttrOfType<StringAttr>(index, "mgpu.name"))
        name = given.str();
      for (const std::string &key : {name, std::to_string(index)})
        if (auto at = options.arguments.find(key);
            at != options.arguments.end())
          import.scalars.emplace(key, at->second);
    }
  auto imported = planner::buildDag(module, import);
  if (!imported)
    return countErrors(std::move(imported.error()));
  Program program;
  static_cast<planner::Program &>(program) = std::move(*imported);
  program.numRaces = imported->numRaces;
  program.notFused = std::move(parsed->notFused);
  return program;
}

Result<std::vector<planner::KernelSpace>>
hostKernelSpaces(const planner::Dag &dag) {
  std::vector<Dim3> grids = planner::largestGrids(dag);
  std::vector<Result<planner::KernelSpace>> results(dag.kernels.size());
  parallelFor(results.size(), 0, [&](size_t k) {
    results[k] = kernels::kernelSpaceOf(dag.kernels[k], grids[k],
                                        planner::KernelTarget::Host);
  });
  std::vector<planner::KernelSpace> spaces;
  for (auto &result : results) {
    MGPU_TRY_ASSIGN(auto space, std::move(result));
    spaces.push_back(std::move(space));
  }
  return spaces;
}

Result<std::vector<std::byte>>
buildHostKernel(const planner::Dag &dag, planner::KernelId kernel,
                const planner::KernelSpace &space,
                const planner::KernelConfig &config, const std::string &cpu) {
  MGPU_TRY_ASSIGN(
      auto build,
      kernels::buildHostKernel(dag.kernels[kernel.value], space, config, cpu));
  return std::move(build.object);
}

Result<std::vector<std::byte>> buildErrorKernel(const planner::Dag &dag,
                                                planner::KernelId kernel) {
  return kernels::buildErrorKernel(dag.kernels[kernel.value]);
}

static Result<OwningOpRef<ModuleOp>>
parseKernel(const planner::KernelSpec &spec, MLIRContext &context) {
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(spec.source, ParserConfig(&context));
  if (!module)
    return fail(
        ErrorKind::Internal,
        fmt::format("kernel {} does not parse after outlining", spec.name));
  return module;
}

static Result<std::vector<std::byte>>
compileKernel(const planner::KernelSpec &spec, const std::string &cpu) {
  MLIRContext context(programDialects(), MLIRContext::Threading::DISABLED);
  MGPU_TRY_ASSIGN(OwningOpRef<ModuleOp> module, parseKernel(spec, context));
  auto object = kernels::emitHostKernel(*module, spec.block, {cpu});
  if (!object)
    return kernels::failOf(spec, object.error());
  return object;
}

Result<std::vector<std::vector<std::byte>>>
compileKernels(const planner::Dag &dag, const std::string &cpu) {
  std::vector<Result<std::vector<std::byte>>> results(dag.kernels.size());
  parallelFor(results.size(), 0, [&](size_t k) {
    results[k] = compileKernel(dag.kernels[k], cpu);
  });
  std::vector<std::vector<std::byte>> objects;
  for (auto &result : results) {
    MGPU_TRY_ASSIGN(auto object, std::move(result));
    objects.push_back(std::move(object));
  }
  return objects;
}

static kernels::CudaText textOf(kernels::CudaKernel kernel,
                                planner::KernelSpace space) {
  kernels::CudaText text;
  text.name = kernel.name;
  text.entry = kernel.entry;
  text.source = std::move(kernel.source);
  text.reason = kernel.reason;
  text.block = kernel.block;
  text.launchBlock = space.defaults.block();
  text.covers = space.covered(space.defaults);
  text.reshapable = kernel.reshapable;
  text.takesPart = kernel.takesPart;
  text.dynamicSharedBytes = kernel.dynamicSharedBytes;
  text.parameterBytes = std::move(kernel.parameterBytes);
  text.tensorMaps = std::move(kernel.tensorMaps);
  text.space = std::move(space);
  return text;
}

namespace {

/// A form of matrix products of f16 and bf16.
struct ProductForm {
  const char *asked; ///< of --tensor-cores
  const char *form, *test;
  std::string (*refusal)(ModuleOp);
  Result<kernels::CudaKernel> (*emit)(ModuleOp,
                                      const kernels::CudaEmitOptions &);
  planner::KernelSpace (*space)(ModuleOp, Dim3, Dim3);
  uint32_t leastArch;
  const char *onlyArch;
};
constexpr ProductForm productForms[] = {
    {"mma", "tensor_cores", "--tensor-cores", kernels::tensorMatmulRefusal,
     kernels::emitTensorMatmul, kernels::tensorMatmulSpace, 80, ""},
    {"wgmma", "wgmma", "--tensor-cores=wgmma", kernels::wgmmaMatmulRefusal,
     kernels::emitWgmmaMatmul, kernels::wgmmaMatmulSpace, 90, "sm_90a"},
};

} // namespace

/// The forms of a matrix product of f16 or bf16, each with why it is not used;
/// one without a source cannot be. None of another kernel.
static std::vector<kernels::CudaText>
productTexts(ModuleOp module, const kernels::CudaEmitOptions &given,
             const std::string &tensorCores) {
  std::vector<kernels::CudaText> texts;
  for (const ProductForm &form : productForms) {
    std::string refusal = form.refusal(module);
    if (refusal == "-")
      continue;
    kernels::CudaEmitOptions options = given;
    options.name += std::string("_") + form.form;
    kernels::CudaText text;
    text.block = options.block;
    if (refusal.empty()) {
      if (auto kernel = form.emit(module, options))
        text = textOf(std::move(*kernel),
                      form.space(module, options.block, options.maxGrid));
      else
        refusal = "what is around the product cannot be emitted";
    }
    text.name = options.name;
    text.form = form.form;
    text.leastArch = form.leastArch;
    text.onlyArch = form.onlyArch;
    const bool hasPassed =
        isByRecord(tensorCores) && asksForForm(tensorCores, form.asked);
    text.disabled =
        !refusal.empty() ? refusal
        : hasPassed
            ? "has passed its test on this card, as has the form that is used"
            : fmt::format("off until its test on a card (tests/gpu) has "
                          "passed, which has not been run; {} uses it",
                          form.test);
    texts.push_back(std::move(text));
  }
  return texts;
}

/// cuBLASLt as a candidate for a matrix product, whose text `text` is: the
/// default of f16 and bf16 unless another form is asked for.
static void addLibrary(ModuleOp module, const std::string &tensorCores,
                       kernels::CudaText &text) {
  std::string refusal = kernels::libraryMatmulRefusal(module);
  if (refusal == "-")
    return;
  kernels::CudaText candidate;
  candidate.name = text.name + "_cublaslt";
  candidate.form = "cublaslt";
  candidate.block = text.block;
  candidate.disabled = refusal;
  if (refusal.empty()) {
    MatrixProduct product = kernels::libraryMatmul(module);
    const bool isNarrow = sizeBytes(product.factors) == 2;
    candidate.product = product;
    candidate.disabled = isNarrow ? "another form was asked for"
                                  : "--tensor-cores=cublaslt uses it";
    const bool isOpen = tensorCores.empty() || isByRecord(tensorCores);
    if (tensorCores == "cublaslt" ||
        (isNarrow && isOpen && text.form != "tensor_cores" &&
         text.form != "wgmma"))
      text.product = product;
  }
  text.candidates.push_back(std::move(candidate));
}

/// What --tensor-cores asks for, taken out of `candidates`, if it is there.
static std::optional<kernels::CudaText>
takeAsked(std::vector<kernels::CudaText> &candidates,
          const std::string &tensorCores) {
  for (const char *asked : formsToTry)
    for (const ProductForm &form : productForms)
      for (auto at = candidates.begin(); at != candidates.end(); ++at)
        if (asked == std::string_view(form.asked) &&
            asksForForm(tensorCores, asked) && at->form == form.form &&
            !at->source.empty()) {
          kernels::CudaText text = std::move(*at);
          candidates.erase(at);
          text.disabled.clear();
          return text;
        }
  return std::nullopt;
}

namespace {

/// Emits kernels, all in one context: making one takes as long as emitting six
/// small kernels.
class TextEmitter {
public:
  explicit TextEmitter(const std::string &tensorCores)
      : tensorCores(tensorCores) {
    context.printOpOnDiagnostic(false);
  }
  Result<kernels::CudaText> emit(const planner::KernelSpec &spec, Dim3 grid);

private:
  std::string tensorCores;
  planner::SourceNames names;
  MLIRContext context{programDialects(), MLIRContext::Threading::DISABLED};
};

Result<kernels::CudaText> TextEmitter::emit(const planner::KernelSpec &spec,
                                            Dim3 grid) {
  MGPU_TRY_ASSIGN(OwningOpRef<ModuleOp> module, parseKernel(spec, context));
  names.nameValues(*module);
  auto space =
      kernels::spaceOf(*module, spec.block, grid, planner::KernelTarget::Cuda);
  if (!space)
    return kernels::failOf(spec, space.error());
  kernels::CudaEmitOptions options{kernels::entryNameOf(spec.name),
                                   spec.location, spec.block, grid};
  // It goes into a comment: a file's name may hold anything.
  for (char &c : options.location)
    if (llvm::isSpace(c))
      c = ' ';
  std::vector<kernels::CudaText> candidates =
      productTexts(*module, options, tensorCores);
  if (auto asked = takeAsked(candidates, tensorCores)) {
    asked->candidates = std::move(candidates);
    addLibrary(*module, tensorCores, *asked);
    return std::move(*asked);
  }
  bool isTiled = kernels::isMatmul(*module),
       isFile = kernels::isSourceKernel(*module);
  auto kernel = kernels::emitCudaKernel(*module, options);
  if (!kernel)
    return kernels::failOf(spec, kernel.error());
  kernels::CudaText text = textOf(std::move(*kernel), std::move(*space));
  text.form = isFile ? "file" : isTiled ? "tiles" : "threads";
  text.candidates = std::move(candidates);
  addLibrary(*module, tensorCores, text);
  return text;
}

} // namespace

std::vector<Result<kernels::CudaText>>
emitCudaKernels(const planner::Dag &dag, const std::string &tensorCores,
                device::BlobCache *cache) {
  // Of a program that changes a little, most entries stay.
  constexpr size_t inEntry = 32;
  std::vector<Dim3> grids = planner::largestGrids(dag);
  std::vector<Result<kernels::CudaText>> texts;
  kernels::TextCache kept(
      cache, {kernels::emitterId(), "tensor cores " + tensorCores});
  std::optional<TextEmitter> emitter;
  for (size_t first = 0; first < dag.kernels.size(); first += inEntry) {
    size_t count = std::min(inEntry, dag.kernels.size() - first);
    std::span specs = std::span(dag.kernels).subspan(first, count);
    std::span most = std::span(grids).subspan(first, count);
    std::string key = kept.keyOf(specs, most);
    if (auto found = kept.find(key, specs)) {
      std::move(found->begin(), found->end(), std::back_inserter(texts));
      continue;
    }
    if (!emitter)
      emitter.emplace(tensorCores);
    for (size_t k = 0; k < count; ++k)
      texts.push_back(emitter->emit(specs[k], most[k]));
    if (auto all =
            allOf(std::vector(texts.end() - ptrdiff_t(count), texts.end())))
      kept.store(key, specs, most, *all);
  }
  return texts;
}

} // namespace mgpu::tune

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/compiler/KernelBuild.h"

#include "kernels/compile/CudaText.h"
#include "kernels/compile/GivenObject.h"
#include "kernels/compile/KernelCache.h"
#include "kernels/cuda/CudaEmitter.h"
#include "kernels/host/HostEmitter.h"
#include "kernels/lower/KernelDialects.h"
#include "pipeline/compiler/ParsedKernel.h"
#include "pipeline/compiler/SpaceOf.h"
#include "planner/import/KernelHash.h"
#include "support/Sha256.h"

#include "mlir/Parser/Parser.h"

#include <fmt/format.h>

namespace mgpu::kernels {

using namespace mlir;

tl::unexpected<Error> failOf(const planner::KernelSpec &spec, Error error) {
  if (error.location.empty()) {
    error.location = spec.location;
    error.message =
        spec.location + ": kernel " + spec.name + ": " + error.message;
  } else {
    error.message += " (kernel " + spec.name + ")";
  }
  return fail(std::move(error));
}

std::unique_ptr<MLIRContext> kernelContext() {
  DialectRegistry registry;
  registerHostEmitDialects(registry);
  auto context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->printOpOnDiagnostic(false);
  return context;
}

static Result<OwningOpRef<ModuleOp>> parseIn(MLIRContext &context,
                                             const planner::KernelSpec &spec) {
  auto text = spec.hostText();
  if (!text)
    return failOf(spec, text.error());
  auto module = parseSourceString<ModuleOp>(**text, ParserConfig(&context));
  if (!module)
    return fail(ErrorKind::Internal,
                "kernel " + spec.name + " does not parse after outlining");
  return module;
}

Result<ParsedKernel> parseKernel(const planner::KernelSpec &spec) {
  ParsedKernel result{kernelContext(), {}};
  MGPU_TRY_ASSIGN(result.module, parseIn(*result.context, spec));
  return result;
}

Result<KernelSpace> kernelSpaceOf(const planner::KernelSpec &spec, Dim3 maxGrid,
                                  KernelTarget target) {
  const planner::CudaFile *file = spec.cudaFile();
  if (file && target == KernelTarget::Cuda)
    return *fileText(*file, "", spec.block, maxGrid).space;
  if (runsAsGiven(spec))
    return fileSpace(*file, spec.block, maxGrid, target);
  MGPU_TRY_ASSIGN(ParsedKernel parsed, parseKernel(spec));
  auto space = spaceOf(*parsed.module, spec.block, maxGrid, target);
  if (!space)
    return failOf(spec, space.error());
  return space;
}

/// A kernel of the user's that has nothing but CUDA C++ or PTX.
static Result<std::vector<std::byte>>
givenObjectOf(const planner::KernelSpec &spec,
              const std::vector<std::pair<std::string, uint32_t>> &macros) {
  auto object = givenObject(spec, macros, userKernelCache());
  if (!object)
    return failOf(spec, object.error());
  return object;
}

Result<std::vector<std::byte>>
compileHostKernel(const planner::KernelSpec &spec, const std::string &cpu) {
  if (runsAsGiven(spec))
    return givenObjectOf(spec, {});
  MGPU_TRY_ASSIGN(ParsedKernel parsed, parseKernel(spec));
  HostEmitOptions options;
  options.cpu = cpu;
  auto object = emitHostKernel(*parsed.module, spec.block, options);
  if (!object)
    return failOf(spec, object.error());
  return object;
}

std::optional<std::string> hostKernelKey(const planner::KernelSpec &spec,
                                         const std::string &cpu,
                                         const KernelConfig *config) {
  const std::string emitter = emitterId();
  const auto target = hostTargetId(cpu);
  const auto text = spec.hostText();
  if (emitter.empty() || !target || !text)
    return std::nullopt;
  // The hash leaves out places in the source, which no object holds. A file of
  // the user's is not hashed with what stands in for it on the host.
  const bool isMlir = std::holds_alternative<planner::MlirKernel>(spec.source);
  return Sha256()
      .addField("host kernel of MLIR 1")
      .addField(emitter)
      .addField(*target)
      .addField(isMlir ? spec.hash : **text)
      .addField(
          fmt::format("{} {} {}", spec.block.x, spec.block.y, spec.block.z))
      .addField(config ? toText(*config) : "as written")
      .hex();
}

/// A hash of all that decides how a kernel is lowered. Values of floating point
/// are left out, unless an integer is made of one, which may decide a branch.
static std::string formOf(ModuleOp module, Dim3 block) {
  auto isFloat = [](Type type) {
    return isa<FloatType>(getElementTypeOrSelf(type));
  };
  const bool decides =
      module
          .walk([&](Operation *op) {
            return llvm::any_of(op->getOperandTypes(), isFloat) &&
                           !llvm::all_of(op->getResultTypes(), isFloat)
                       ? WalkResult::interrupt()
                       : WalkResult::advance();
          })
          .wasInterrupted();
  using Floats = planner::KernelHasher::Floats;
  return planner::KernelHasher(module,
                               decides ? Floats::Hashed : Floats::LeftOut)
      .hash(module, block);
}

Result<void> verifyHostKernel(const planner::KernelSpec &spec,
                              MLIRContext &context, SoundForms &sound) {
  if (runsAsGiven(spec)) {
    MGPU_TRY(givenObjectOf(spec, {}));
    return {};
  }
  MGPU_TRY_ASSIGN(auto module, parseIn(context, spec));
  const std::string form = formOf(*module, spec.block);
  if (sound.contains(form))
    return {};
  auto verified = verifyHostKernel(*module, spec.block);
  if (!verified)
    return failOf(spec, verified.error());
  sound.add(form);
  return {};
}

Result<HostBuild> buildHostKernel(const planner::KernelSpec &spec,
                                  const KernelSpace &space,
                                  const KernelConfig &config,
                                  const std::string &cpu) {
  MGPU_TRY(space.check(config));
  if (runsAsGiven(spec)) {
    std::vector<std::pair<std::string, uint32_t>> macros;
    for (size_t k = 0; k < space.tunables().size(); ++k)
      macros.emplace_back(space.tunables()[k].name, config.tunables[k]);
    MGPU_TRY_ASSIGN(auto object, givenObjectOf(spec, macros));
    return HostBuild{std::move(object), space.maxGrid};
  }
  MGPU_TRY_ASSIGN(ParsedKernel parsed, parseKernel(spec));
  HostEmitOptions options;
  options.cpu = cpu;
  options.config = config;
  auto object = emitHostKernel(*parsed.module, spec.block, options);
  if (!object)
    return failOf(spec, object.error());
  return HostBuild{std::move(*object), space.launchGrid(config, space.maxGrid)};
}

Result<std::vector<std::byte>>
buildErrorKernel(const planner::KernelSpec &spec) {
  MGPU_TRY_ASSIGN(ParsedKernel parsed, parseKernel(spec));
  HostEmitOptions options;
  options.boundsErrors = true;
  auto object = emitHostKernel(*parsed.module, spec.block, options);
  if (!object)
    return failOf(spec, object.error());
  return object;
}

} // namespace mgpu::kernels

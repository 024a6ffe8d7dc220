// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/program/Compiler.h"

#include "device/host/CpuLevel.h"
#include "kernels/compile/CudaText.h"
#include "kernels/compile/GivenObject.h"
#include "kernels/compile/HostCompiler.h"
#include "kernels/compile/KernelCache.h"
#include "support/Parallel.h"
#include "support/Progress.h"

#include <fmt/format.h>

namespace mgpu::pipeline {

using planner::Dag, kernels::KernelSpace;

static tl::unexpected<Error> absent(const std::string &what) {
  return fail(ErrorKind::Unsupported,
              fmt::format("cannot {}: this mgpu-tune was built without the "
                          "compiler half (-DMGPU_COMPILER=OFF)",
                          what));
}

Result<LoadedProgram> Compiler::importProgram(const ImportOptions &options,
                                              std::vector<Message> *) const {
  auto error = absent(fmt::format("read '{}'", options.file));
  error.value().message += "; it reads bundles and .json DAGs";
  return error;
}

Result<std::string> Compiler::decode(std::span<const std::byte>,
                                     const std::string &name) const {
  return absent(fmt::format("decode '{}'", name));
}

Result<std::vector<Compiler::Object>>
Compiler::compileKernels(const Dag &dag, const std::string &) const {
  if (dag.kernels.empty())
    return std::vector<Object>();
  return absent("compile");
}

std::vector<Result<void>> Compiler::verifyHostKernels(const Dag &dag) const {
  return std::vector<Result<void>>(dag.kernels.size());
}

Result<std::vector<KernelSpace>>
Compiler::hostKernelSpaces(const Dag &dag) const {
  if (dag.kernels.empty())
    return std::vector<KernelSpace>();
  return absent("build kernels");
}

Result<Compiler::Object>
Compiler::buildHostKernel(const Dag &, planner::KernelId, const KernelSpace &,
                          const kernels::KernelConfig &,
                          const std::string &) const {
  return absent("build kernels");
}

Result<Compiler::Object> Compiler::buildErrorKernel(const Dag &,
                                                    planner::KernelId) const {
  return absent("build kernels");
}

std::vector<Result<kernels::CudaText>>
Compiler::emitCudaKernels(const Dag &dag, const Variants &,
                          device::BlobCache *) const {
  return std::vector<Result<kernels::CudaText>>(dag.kernels.size(),
                                                absent("emit kernels"));
}

const Compiler &noCompiler() {
  static const Compiler compiler;
  return compiler;
}

using planner::CudaFile, planner::KernelSpec;

static tl::unexpected<Error> absentForm(const KernelSpec &kernel,
                                        const char *what, const char *advice) {
  const std::string at = kernel.location.empty() ? "" : kernel.location + ": ";
  return fail(ErrorKind::Unsupported,
              fmt::format("{}kernel '{}' has no {}: {}", at, kernel.name, what,
                          advice));
}

/// Unsupported where a kernel has nothing that the host target runs.
static Result<void> checkHost(const planner::Dag &dag) {
  for (const KernelSpec &kernel : dag.kernels)
    if (const CudaFile *file = kernel.cudaFile();
        !file || (file->host.empty() && !kernels::runsAsGiven(kernel)))
      return absentForm(kernel, "C++ for the host, CUDA C++ or PTX",
                        "give one of them, or open the program on a GPU");
  return {};
}

static Result<Compiler::Object> objectOf(const KernelSpec &kernel,
                                         const kernels::HostMacros &macros,
                                         const std::string &cpu) {
  device::BlobCache *cache = kernels::userKernelCache();
  return kernels::runsAsGiven(kernel)
             ? kernels::givenObject(kernel, macros, cache)
             : kernels::compileHostSource(kernel, macros, cpu, cache);
}

/// Another machine that has the same caches may be of another level than this
/// one.
static std::string levelOf(const std::string &cpu) {
  const std::vector<std::string_view> levels = device::cpuLevels();
  return cpu != "native" || levels.empty() ? cpu : std::string(levels.front());
}

Result<std::vector<Compiler::Object>>
SourceCompiler::compileKernels(const planner::Dag &dag,
                               const std::string &cpu) const {
  MGPU_TRY(checkHost(dag));
  std::vector<Result<Object>> objects(dag.kernels.size());
  Progress progress("compiling kernels for " + cpu, objects.size());
  parallelFor(objects.size(), 0, [&](size_t k) {
    objects[k] = objectOf(dag.kernels[k], {}, levelOf(cpu));
    progress.step();
  });
  return allOf(std::move(objects));
}

Result<std::vector<kernels::KernelSpace>>
SourceCompiler::hostKernelSpaces(const planner::Dag &dag) const {
  MGPU_TRY(checkHost(dag));
  const std::vector<Dim3> grids = planner::largestGrids(dag);
  std::vector<kernels::KernelSpace> spaces;
  for (size_t k = 0; k < dag.kernels.size(); ++k)
    spaces.push_back(kernels::fileSpace(*dag.kernels[k].cudaFile(),
                                        dag.kernels[k].block, grids[k],
                                        kernels::KernelTarget::Host));
  return spaces;
}

Result<Compiler::Object> SourceCompiler::buildHostKernel(
    const planner::Dag &dag, planner::KernelId kernel,
    const kernels::KernelSpace &space, const kernels::KernelConfig &config,
    const std::string &cpu) const {
  MGPU_TRY(space.check(config));
  kernels::HostMacros macros;
  // The first values are in the text, whose object is then the default's.
  for (size_t k = 0; k < space.tunables().size(); ++k)
    if (const auto &[name, values, reason] = space.tunables()[k];
        config.tunables[k] != values.front())
      macros.emplace_back(name, config.tunables[k]);
  return objectOf(dag.kernels[kernel.value], macros, levelOf(cpu));
}

std::vector<Result<kernels::CudaText>>
SourceCompiler::emitCudaKernels(const planner::Dag &dag, const Variants &,
                                device::BlobCache *) const {
  const std::vector<Dim3> grids = planner::largestGrids(dag);
  std::vector<Result<kernels::CudaText>> texts;
  for (size_t k = 0; k < dag.kernels.size(); ++k) {
    const KernelSpec &kernel = dag.kernels[k];
    const CudaFile *file = kernel.cudaFile();
    if (!file || (file->text.empty() && file->cubins.empty()))
      texts.push_back(absentForm(kernel, "CUDA C++ and no cubins",
                                 "give one of them, or open the program on "
                                 "the host"));
    else
      texts.push_back(
          kernels::fileText(*file, kernel.name, kernel.block, grids[k]));
  }
  return texts;
}

const Compiler &sourceCompiler() {
  static const SourceCompiler compiler;
  return compiler;
}

LoadedProgram loadBuilt(const planner::Program &program,
                        const std::string &target) {
  LoadedProgram loaded;
  static_cast<planner::Program &>(loaded) = program;
  loaded.from.compiler = &sourceCompiler();
  loaded.from.file = "(built by calls)"; // no file of the user's is meant
  loaded.from.entry = program.dag.name;
  loaded.from.target = target;
  loaded.from.isQuiet = true; // a library prints nothing
  const std::vector<bool> reads = planner::readsFirst(program.dag);
  for (const planner::ProgramArgument &argument : program.arguments)
    loaded.needsValue.push_back(argument.buffer &&
                                reads[argument.buffer->value]);
  return loaded;
}

} // namespace mgpu::pipeline

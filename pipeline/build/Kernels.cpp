// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/build/Kernels.h"

#include "db/FileSystem.h"
#include "db/SqliteBlobCache.h"
#include "device/cuda/api/DeviceKernels.h"
#include "device/host/CpuLevel.h"
#include "kernels/compile/KernelRecipe.h"
#include "kernels/compile/NvrtcCompiler.h"
#include "pipeline/program/Compiler.h"
#include "pipeline/target/Target.h"
#include "planner/plan/Workspace.h"

#include <fmt/format.h>

#include <algorithm>

namespace mgpu::pipeline {

std::unique_ptr<db::SqliteBlobCache>
openCubinCache(const std::string &database) {
  auto path = db::databasePath(database);
  auto cache =
      path ? db::SqliteBlobCache::open(*path) : tl::unexpected(path.error());
  if (cache)
    return std::move(*cache);
  fmt::print(stderr, "mgpu-tune: warning: cubins are not kept: {}\n",
             cache.error().message);
  return nullptr;
}

Result<HostKernels> hostKernels(const LoadedProgram &program,
                                const std::string &cpu) {
  std::vector<std::string_view> levels = device::cpuLevels();
  if (!cpu.empty()) {
    MGPU_TRY(checkWorkers(0, cpu, "--"));
    levels = {cpu};
  }
  if (program.bundle) {
    MGPU_TRY_ASSIGN(auto kernels, program.bundle->hostKernels(levels));
    return HostKernels{std::move(kernels.level), std::move(kernels.objects)};
  }
  HostKernels kernels{cpu.empty() ? "native" : cpu, {}};
  MGPU_TRY_ASSIGN(kernels.objects,
                  program.compiler().compileKernels(program.dag, kernels.cpu));
  return kernels;
}

Result<std::vector<Result<kernels::CudaText>>>
eachCudaText(const LoadedProgram &program, device::BlobCache *cache) {
  if (program.bundle) {
    MGPU_TRY_ASSIGN(auto stored, program.bundle->cudaTexts());
    return std::vector<Result<kernels::CudaText>>(stored.begin(), stored.end());
  }
  auto texts =
      program.compiler().emitCudaKernels(program.dag, program.variants, cache);
  for (Result<kernels::CudaText> &text : texts) {
    if (!text)
      continue;
    text->image.awaits =
        program.variants.uses(Variant::Pdl) && text->image.takesPart;
    for (kernels::CudaText &candidate : text->candidates)
      candidate.image.awaits = text->image.awaits;
  }
  return texts;
}

Result<std::vector<kernels::CudaText>> cudaTexts(const LoadedProgram &program,
                                                 device::BlobCache *cache) {
  MGPU_TRY_ASSIGN(auto each, eachCudaText(program, cache));
  return allOf(std::move(each));
}

Result<void> checkPdl(bool isAsked, const std::string &arch) {
  kernels::CudaText any;
  any.image.awaits = true;
  if (!isAsked || kernels::awaitsOn(any, arch))
    return {};
  return fail(
      ErrorKind::Unsupported,
      fmt::format("--variant pdl: kernels wait for each other from sm_90 "
                  "on, and not on {}: leave it out",
                  arch));
}

kernels::CompileLimits compileLimits(uint64_t seconds) {
  return {.timeout = std::chrono::seconds(seconds)};
}

Error errorAt(const std::string &location, Error error) {
  if (!location.empty() && !error.message.starts_with(location))
    error.message = location + ": " + error.message;
  return error;
}

using Objects = std::map<std::string, std::string>;

/// The object for `arch`: its own, else PTX for the nearest architecture before
/// it, which the driver compiles.
static Objects::const_iterator objectFor(const Objects &objects,
                                         const std::string &arch) {
  auto numberOf = [](const std::string &name) {
    return std::atoi(name.c_str() + std::min<size_t>(name.size(), 3));
  };
  if (auto own = objects.find(arch); own != objects.end())
    return own;
  auto best = objects.end();
  for (auto at = objects.begin(); at != objects.end(); ++at) {
    // Names that end in a letter are of that architecture alone.
    const bool isPortable = std::isdigit(uint8_t(at->first.back())) != 0 &&
                            at->second.find(".version") != std::string::npos &&
                            !at->second.starts_with("\x7f"
                                                    "ELF");
    if (isPortable && numberOf(at->first) <= numberOf(arch) &&
        (best == objects.end() || numberOf(best->first) < numberOf(at->first)))
      best = at;
  }
  return best;
}

Result<std::optional<std::vector<std::byte>>>
givenCubin(const planner::KernelSpec &kernel, const kernels::CudaText &text,
           const std::string &arch) {
  using Cubin = std::optional<std::vector<std::byte>>;
  const planner::CudaFile *file = kernel.cudaFile();
  if (!file || file->cubins.empty())
    return Cubin();
  auto at = objectFor(file->cubins, arch);
  if (at != file->cubins.end()) {
    const auto bytes = std::as_bytes(std::span(at->second));
    std::vector<std::byte> cubin(bytes.begin(), bytes.end());
    MGPU_TRY(kernels::checkParameters(text.name, text.image,
                                      kernels::readCubin(cubin)));
    return Cubin(std::move(cubin));
  }
  if (!file->text.empty())
    return Cubin();
  std::string known;
  for (const auto &[other, cubin] : file->cubins)
    known += (known.empty() ? "" : ", ") + other;
  return fail(ErrorKind::Absent,
              fmt::format("kernel '{}' came compiled for {} and without CUDA "
                          "C++: give a cubin for {} too",
                          kernel.name, known, arch));
}

/// The program's kernels for `arch`, those compiled that did not come so.
static Result<std::vector<std::vector<std::byte>>>
makeCubins(const LoadedProgram &program,
           const std::vector<kernels::CudaText> &texts, const std::string &arch,
           device::BlobCache *cache) {
  std::vector<std::vector<std::byte>> cubins(texts.size());
  std::vector<kernels::CudaText> others;
  std::vector<size_t> made;
  for (size_t k = 0; k < texts.size(); ++k) {
    MGPU_TRY_ASSIGN(auto given,
                    givenCubin(program.dag.kernels[k], texts[k], arch));
    if (given) {
      cubins[k] = std::move(*given);
      continue;
    }
    others.push_back(texts[k]);
    made.push_back(k);
  }
  if (others.empty())
    return cubins;
  MGPU_TRY_ASSIGN(
      auto compiled,
      kernels::compileTexts(others, arch, cache,
                            compileLimits(program.from.compileSeconds)));
  for (size_t k = 0; k < compiled.size(); ++k) {
    if (!compiled[k])
      return fail(errorAt(program.dag.kernels[made[k]].location,
                          std::move(compiled[k].error())));
    cubins[made[k]] = compiled[k]->program->cubin;
  }
  return cubins;
}

Result<std::vector<std::vector<std::byte>>>
cudaKernels(const LoadedProgram &program, const std::string &arch,
            device::BlobCache *cache) {
  MGPU_TRY_ASSIGN(std::vector<kernels::CudaText> texts,
                  cudaTexts(program, cache));
  MGPU_TRY(checkPdl(program.variants.isAsked(Variant::Pdl), arch));
  std::vector<std::vector<std::byte>> cubins;
  if (program.bundle)
    if (auto stored = program.bundle->cubins(arch))
      cubins = std::move(*stored);
  if (cubins.empty()) {
    MGPU_TRY_ASSIGN(cubins, makeCubins(program, texts, arch, cache));
  }
  return kernels::cudaObjects(texts, cubins, arch);
}

Result<device::CudaCompile> ownCompilerOf(const LoadedProgram &program) {
  capture::OwnCubins given;
  if (program.bundle) {
    MGPU_TRY_ASSIGN(given, program.bundle->ownCubins());
  }
  return ownCompiler(program.from.database, std::move(given));
}

uint64_t productWorkspace(const LoadedProgram &program,
                          uint32_t streamsPerDevice) {
  // Few programs have a matmul, and writing kernels takes its time. A bundle
  // holds them written, and an old one does not say which are matmuls.
  const std::vector<planner::KernelSpec> &specs = program.dag.kernels;
  if (!program.bundle &&
      std::ranges::none_of(specs, &planner::KernelSpec::mayBeProduct))
    return 0;
  auto texts = cudaTexts(program, nullptr);
  if (!texts)
    return 0;
  std::vector<bool> isUser;
  for (const kernels::CudaText &text : *texts)
    isUser.push_back(text.image.product.has_value());
  return planner::mostWorkspace(program.dag, isUser, streamsPerDevice,
                                kernels::productWorkspaceBytes);
}

std::set<std::string> ownPrograms(const planner::Dag &dag) {
  std::set<std::string> programs{device::moveKernelSource()};
  for (const planner::DagNode &node : dag.nodes)
    if (const auto *call = std::get_if<planner::CollectiveCall>(&node.work))
      if (call->kind == CollectiveKind::AllReduce ||
          call->kind == CollectiveKind::ReduceScatter)
        programs.insert(
            device::reductionKernelSource(call->elementType, call->reduction));
  return programs;
}

Result<capture::OwnCubins> compileOwn(const planner::Dag &dag,
                                      std::span<const std::string> archs,
                                      device::BlobCache *cache) {
  capture::OwnCubins cubins;
  for (const std::string &text : ownPrograms(dag))
    for (const std::string &arch : archs) {
      MGPU_TRY_ASSIGN(auto cubin,
                      kernels::compileCubin(text, "mgpu_own", arch, cache));
      cubins.emplace(capture::ownKey(arch, text), std::move(cubin));
    }
  return cubins;
}

device::CudaCompile ownCompiler(std::optional<std::string> database,
                                capture::OwnCubins given) {
  return [database = std::move(database), given = std::move(given)](
             const std::string &source, const std::string &name,
             const std::string &arch) -> Result<std::vector<std::byte>> {
    if (auto at = given.find(capture::ownKey(arch, source)); at != given.end())
      return at->second;
    // Without a cache it takes longer, and nothing else; who keeps the
    // program's cubins has said so.
    std::unique_ptr<db::SqliteBlobCache> cache;
    if (auto path = db::databasePath(database.value_or("")); database && path)
      if (auto opened = db::SqliteBlobCache::open(*path))
        cache = std::move(*opened);
    return kernels::compileCubin(source, name, arch, cache.get());
  };
}

} // namespace mgpu::pipeline

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/CompileTexts.h"

#include "kernels/abi/KernelImage.h"
#include "kernels/compile/Batch.h"
#include "kernels/compile/CudaConfig.h"
#include "kernels/compile/CudaObjects.h"
#include "kernels/compile/PtxasLog.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <thread>

namespace mgpu::kernels {

Result<void> checkEntry(const CudaText &text, const CompiledKernel &program,
                        const Cubin &cubin) {
  if (!program.find(text.image.entry) && text.image.takesPart)
    return fail(ErrorKind::Internal,
                fmt::format("NVRTC reports nothing of kernel {}", text.name));
  if (!program.find(text.image.entry))
    return fail(ErrorKind::Invalid,
                fmt::format("kernel {}: there is no entry '{}' once compiled: "
                            "declare it extern \"C\" __global__",
                            text.name, text.image.entry));
  return checkParameters(text, cubin);
}

namespace {

/// Texts that are compiled as one program.
struct Job {
  std::vector<size_t> texts;
  std::string name;
};

/// Small kernels share a program; one for each core, if there are so many.
std::vector<Job> jobsOf(const std::vector<CudaText> &texts) {
  constexpr size_t mostInBatch = 64;
  size_t cores = std::max(1u, std::thread::hardware_concurrency());
  size_t perBatch =
      std::clamp<size_t>((texts.size() + cores - 1) / cores, 1, mostInBatch);
  std::vector<Job> jobs;
  Job *open = nullptr; // with room for more
  for (size_t k = 0; k < texts.size(); ++k) {
    // A file of a user's may hold anything, so it is a program of its own; as
    // is what is for another architecture than the rest.
    if (!texts[k].image.takesPart || !texts[k].image.arch.empty() ||
        texts[k].image.hasWarpgroups) {
      jobs.push_back({{k}, texts[k].name});
      open = nullptr;
      continue;
    }
    if (!open || open->texts.size() == perBatch) {
      jobs.push_back({{}, texts[k].name});
      open = &jobs.back();
    }
    open->texts.push_back(k);
  }
  return jobs;
}

/// The default configuration, which the image of a text says how to launch: its
/// macros are not those that the text has by itself.
std::vector<std::pair<std::string, std::string>>
defaultMacros(const CudaText &text, const std::string &arch) {
  auto macros = awaitMacros(text, arch);
  if (text.space)
    std::ranges::move(macrosOf(*text.space, text.space->defaults),
                      std::back_inserter(macros));
  return macros;
}

CompileJob programOf(const Job &job, const std::vector<CudaText> &texts,
                     const std::string &arch) {
  const CudaText &first = texts[job.texts.front()];
  std::vector<BatchItem> items;
  for (size_t k : job.texts)
    items.push_back({texts[k].image.blob, texts[k].image.entry,
                     texts[k].image.entry, defaultMacros(texts[k], arch)});
  return {first.image.takesPart ? batchSource(items) : first.image.blob,
          job.name + ".cu", compileOptions(first), archOf(first, arch)};
}

/// Compiles the programs of `jobs` into `out`. A program of several texts that
/// fails is not an error yet: its texts are compiled again one by one, as
/// `alone` says.
Result<void> compileJobs(const std::vector<Job> &jobs,
                         const std::vector<CudaText> &texts,
                         const std::string &arch, const NvrtcCompiler &compiler,
                         const CompileLimits &limits,
                         std::vector<Result<CompiledText>> &out,
                         std::vector<Job> &alone) {
  std::vector<CompileJob> programs;
  for (const Job &job : jobs)
    programs.push_back(programOf(job, texts, arch));
  auto results = compiler.compileAll(programs, limits);
  for (size_t job = 0; job < jobs.size(); ++job) {
    Result<CompiledKernel> &kernel = results[job];
    if (!kernel && kernel.error().kind == ErrorKind::Usage) // for all alike
      return fail(std::move(kernel.error()));
    if (!kernel && jobs[job].texts.size() > 1) {
      for (size_t k : jobs[job].texts)
        alone.push_back({{k}, texts[k].name});
      continue;
    }
    if (!kernel) {
      out[jobs[job].texts.front()] = fail(std::move(kernel.error()));
      continue;
    }
    if (hasWarning(kernel->log))
      fmt::print(stderr, "{}\n", kernel->log);
    auto program = std::make_shared<const CompiledKernel>(std::move(*kernel));
    const Cubin cubin = readCubin(program->cubin);
    for (size_t k : jobs[job].texts) {
      if (auto fits = checkEntry(texts[k], *program, cubin); fits)
        out[k] = CompiledText{program, program->find(texts[k].image.entry)};
      else
        out[k] = fail(std::move(fits.error()));
    }
  }
  return {};
}

} // namespace

Result<std::vector<Result<CompiledText>>>
compileTexts(const std::vector<CudaText> &texts, const std::string &arch,
             device::BlobCache *cache, const CompileLimits &limits) {
  std::vector<Result<CompiledText>> out(texts.size());
  if (texts.empty())
    return out;
  MGPU_TRY_ASSIGN(auto compiler, NvrtcCompiler::open(cache));
  std::vector<Job> alone, none;
  MGPU_TRY(
      compileJobs(jobsOf(texts), texts, arch, compiler, limits, out, alone));
  if (!alone.empty())
    MGPU_TRY(compileJobs(alone, texts, arch, compiler, limits, out, none));
  return out;
}

Result<std::vector<std::byte>>
buildGpuKernel(CudaText text, const planner::KernelConfig &config,
               const std::string &arch, bool awaits, device::BlobCache *cache) {
  text.image.awaits = awaits;
  if (!text.space)
    return fail(
        ErrorKind::Unsupported,
        fmt::format("kernel {} has no space to choose from", text.name));
  MGPU_TRY_ASSIGN(auto compiler, NvrtcCompiler::open(cache));
  CompileJob job{text.image.blob, text.name + ".cu", compileOptions(text),
                 archOf(text, arch)};
  auto macros = macrosOf(*text.space, config);
  std::ranges::move(awaitMacros(text, arch), std::back_inserter(macros));
  for (auto &[name, value] : macros)
    job.options.push_back(fmt::format("-D{}={}", name, value));
  MGPU_TRY_ASSIGN(CompiledKernel compiled, compiler.compile(job));
  text.image.block = config.block();
  text.image.covers = text.space->covered(config);
  if (text.space->sharedIsDynamic)
    text.image.dynamicSharedBytes = uint32_t(text.space->sharedBytesOf(config));
  const uint32_t place = libraryPlace(*text.space, config);
  if (place == 0 || !text.image.product)
    text.image.product.reset();
  else
    text.image.product->choice = place - 1;
  MGPU_TRY(checkEntry(text, compiled, readCubin(compiled.cubin)));
  text.image.clusterX = config[planner::KernelParameter::ClusterX];
  return encodeImage(cubinImage(text, compiled.cubin, arch));
}

} // namespace mgpu::kernels

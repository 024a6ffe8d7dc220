// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/CompileTexts.h"

#include "kernels/abi/KernelImage.h"
#include "kernels/compile/KernelRecipe.h"
#include "kernels/compile/NvrtcCompiler.h"

#include <algorithm>
#include <fmt/format.h>
#include <thread>

namespace mgpu::kernels {

namespace {

/// Texts that are compiled as one program.
struct Job {
  std::vector<size_t> texts;
  std::string name;
};

/// Small kernels share a program; one for each core, if there are so many.
std::vector<Job> jobsOf(const std::vector<CudaText> &texts, Programs programs) {
  const size_t mostInBatch = programs == Programs::Shared ? 64 : 1;
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

CompileJob programOf(const Job &job, const std::vector<KernelRecipe> &recipes) {
  const KernelRecipe &first = recipes[job.texts.front()];
  if (!first.image.takesPart)
    return first.job();
  std::vector<BatchItem> items;
  for (size_t k : job.texts)
    items.push_back(recipes[k].item());
  return {batchSource(items), job.name + ".cu", first.options,
          first.compileArch};
}

/// Compiles the programs of `jobs` into `out`. A program of several texts that
/// fails is not an error yet: its texts are compiled again one by one, as
/// `alone` says.
Result<void> compileJobs(const std::vector<Job> &jobs,
                         const std::vector<KernelRecipe> &recipes,
                         const NvrtcCompiler &compiler,
                         const CompileLimits &limits,
                         std::vector<Result<CompiledText>> &out,
                         std::vector<Job> &alone) {
  std::vector<CompileJob> programs;
  for (const Job &job : jobs)
    programs.push_back(programOf(job, recipes));
  auto results = compiler.compileAll(programs, limits);
  for (size_t job = 0; job < jobs.size(); ++job) {
    Result<CompiledKernel> &kernel = results[job];
    if (!kernel && kernel.error().kind == ErrorKind::Usage) // for all alike
      return fail(std::move(kernel.error()));
    if (!kernel && jobs[job].texts.size() > 1) {
      for (size_t k : jobs[job].texts)
        alone.push_back({{k}, recipes[k].name});
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
      if (auto image = recipes[k].imageOf(*program, cubin); image)
        out[k] = CompiledText{program, program->find(image->entry)};
      else
        out[k] = fail(std::move(image.error()));
    }
  }
  return {};
}

} // namespace

Result<std::vector<Result<CompiledText>>>
compileTexts(const std::vector<CudaText> &texts, const std::string &arch,
             device::BlobCache *cache, const CompileLimits &limits,
             Programs programs) {
  std::vector<Result<CompiledText>> out(texts.size());
  if (texts.empty())
    return out;
  MGPU_TRY_ASSIGN(auto compiler, NvrtcCompiler::open(cache));
  std::vector<KernelRecipe> recipes;
  for (const CudaText &text : texts)
    recipes.push_back(recipeOf(text, arch));
  std::vector<Job> alone, none;
  MGPU_TRY(compileJobs(jobsOf(texts, programs), recipes, compiler, limits, out,
                       alone));
  if (!alone.empty())
    MGPU_TRY(compileJobs(alone, recipes, compiler, limits, out, none));
  return out;
}

Result<std::vector<std::byte>>
buildGpuKernel(CudaText text, const KernelConfig &config,
               const std::string &arch, bool awaits, device::BlobCache *cache) {
  text.image.awaits = awaits;
  if (!text.space)
    return fail(
        ErrorKind::Unsupported,
        fmt::format("kernel {} has no space to choose from", text.name));
  MGPU_TRY_ASSIGN(auto compiler, NvrtcCompiler::open(cache));
  const KernelRecipe recipe = recipeOf(text, config, arch);
  MGPU_TRY_ASSIGN(CompiledKernel compiled, compiler.compile(recipe.job()));
  MGPU_TRY_ASSIGN(const KernelImage image,
                  recipe.imageOf(compiled, readCubin(compiled.cubin)));
  return encodeImage(image);
}

} // namespace mgpu::kernels

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/CudaKernels.h"

#include "device/cuda/api/Libraries.h"
#include "kernels/abi/CudaKernelObject.h"
#include "kernels/compile/Batch.h"
#include "kernels/compile/NvrtcCompiler.h"
#include "kernels/compile/PtxasLog.h"
#include "planner/plan/Workspace.h"

#include <algorithm>
#include <fmt/format.h>
#include <thread>

namespace mgpu::tune {

Result<void> checkEntry(const kernels::CudaText &text,
                        const kernels::CompiledKernel &program,
                        const kernels::Cubin &cubin) {
  if (!program.find(text.entry) && text.takesPart)
    return fail(ErrorKind::Internal,
                fmt::format("NVRTC reports nothing of kernel {}", text.name));
  if (!program.find(text.entry))
    return fail(ErrorKind::Invalid,
                fmt::format("kernel {}: there is no entry '{}' once compiled: "
                            "declare it extern \"C\" __global__",
                            text.name, text.entry));
  return kernels::checkParameters(text, cubin);
}

Result<void> checkPdl(bool isAsked, const std::string &arch) {
  kernels::CudaText any;
  any.awaits = true;
  if (!isAsked || kernels::awaitsOn(any, arch))
    return {};
  return fail(ErrorKind::Unsupported,
              fmt::format("--pdl: kernels wait for each other from sm_90 on, "
                          "and not on {}: leave it out",
                          arch));
}

kernels::CompileLimits compileLimits(uint64_t seconds) {
  return {.timeout = std::chrono::seconds(seconds)};
}

namespace {

/// Texts that are compiled as one program.
struct Job {
  std::vector<size_t> texts;
  std::string name;
};

/// Small kernels share a program; one for each core, if there are so many.
std::vector<Job> jobsOf(const std::vector<kernels::CudaText> &texts) {
  constexpr size_t mostInBatch = 64;
  size_t cores = std::max(1u, std::thread::hardware_concurrency());
  size_t perBatch =
      std::clamp<size_t>((texts.size() + cores - 1) / cores, 1, mostInBatch);
  std::vector<Job> jobs;
  Job *open = nullptr; // with room for more
  for (size_t k = 0; k < texts.size(); ++k) {
    // A file of a user's may hold anything, so it is a program of its own; as
    // is what is for another architecture than the rest.
    if (!texts[k].takesPart || !texts[k].onlyArch.empty()) {
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

kernels::CompileJob programOf(const Job &job,
                              const std::vector<kernels::CudaText> &texts,
                              const std::string &arch) {
  const kernels::CudaText &first = texts[job.texts.front()];
  std::vector<kernels::BatchItem> items;
  for (size_t k : job.texts)
    items.push_back({texts[k].source, texts[k].entry, texts[k].entry,
                     kernels::awaitMacros(texts[k], arch)});
  return {first.takesPart ? kernels::batchSource(items) : first.source,
          job.name + ".cu", kernels::compileOptions(first),
          kernels::archOf(first, arch)};
}

} // namespace

Result<std::vector<Result<CompiledText>>>
compileTexts(const std::vector<kernels::CudaText> &texts,
             const std::string &arch, device::BlobCache *cache,
             const kernels::CompileLimits &limits) {
  std::vector<Result<CompiledText>> out(texts.size());
  if (texts.empty())
    return out;
  MGPU_TRY_ASSIGN(auto compiler, kernels::NvrtcCompiler::open(cache));
  std::vector<Job> alone; // where they fail together
  auto compile = [&](const std::vector<Job> &jobs) -> Result<void> {
    std::vector<kernels::CompileJob> programs;
    for (const Job &job : jobs)
      programs.push_back(programOf(job, texts, arch));
    auto results = compiler.compileAll(programs, limits);
    for (size_t job = 0; job < jobs.size(); ++job) {
      Result<kernels::CompiledKernel> &kernel = results[job];
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
      if (kernels::hasWarning(kernel->log))
        fmt::print(stderr, "{}\n", kernel->log);
      auto program =
          std::make_shared<const kernels::CompiledKernel>(std::move(*kernel));
      kernels::Cubin cubin = kernels::readCubin(program->cubin);
      for (size_t k : jobs[job].texts) {
        if (auto fits = checkEntry(texts[k], *program, cubin); fits)
          out[k] = CompiledText{program, program->find(texts[k].entry)};
        else
          out[k] = fail(std::move(fits.error()));
      }
    }
    return {};
  };
  MGPU_TRY(compile(jobsOf(texts)));
  if (!alone.empty())
    MGPU_TRY(compile(std::vector<Job>(std::move(alone))));
  return out;
}

Error errorAt(const std::string &location, Error error) {
  if (!location.empty() && !error.message.starts_with(location))
    error.message = location + ": " + error.message;
  return error;
}

Result<kernels::CudaObjects> cudaKernels(const Program &program,
                                         const std::string &arch,
                                         device::BlobCache *cache) {
  MGPU_TRY_ASSIGN(std::vector<kernels::CudaText> texts,
                  cudaTexts(program, cache));
  MGPU_TRY(checkPdl(program.pdl, arch));
  std::vector<std::vector<std::byte>> cubins;
  if (program.bundle)
    if (auto stored = program.bundle->cubins(arch))
      cubins = std::move(*stored);
  if (cubins.empty()) {
    MGPU_TRY_ASSIGN(auto compiled,
                    compileTexts(texts, arch, cache,
                                 compileLimits(program.compileSeconds)));
    for (size_t k = 0; k < compiled.size(); ++k) {
      if (!compiled[k])
        return fail(errorAt(program.dag.kernels[k].location,
                            std::move(compiled[k].error())));
      cubins.push_back(compiled[k]->program->cubin);
    }
  }
  return kernels::cudaObjects(texts, std::move(cubins), arch,
                              kernels::hasProducts(texts) &&
                                  device::findCublasLt());
}

Result<device::CudaCompile> ownCompilerOf(const Program &program,
                                          const std::string &database) {
  capture::OwnCubins given;
  if (program.bundle) {
    MGPU_TRY_ASSIGN(given, program.bundle->ownCubins());
  }
  return ownCompiler(database, std::move(given));
}

uint64_t productWorkspace(const Program &program, uint32_t streamsPerDevice) {
  // Few programs have a product, and writing kernels takes its time.
  const std::vector<planner::KernelSpec> &specs = program.dag.kernels;
  if (std::none_of(
          specs.begin(), specs.end(), [](const planner::KernelSpec &spec) {
            return spec.source.find("mgpu.matmul") != std::string::npos;
          }))
    return 0;
  auto texts = cudaTexts(program, nullptr);
  if (!texts)
    return 0;
  std::vector<bool> isUser;
  for (const kernels::CudaText &text : *texts)
    isUser.push_back(text.product.has_value());
  return planner::mostWorkspace(program.dag, isUser, streamsPerDevice,
                                device::productWorkspaceBytes);
}

} // namespace mgpu::tune

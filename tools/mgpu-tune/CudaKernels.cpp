// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/CudaKernels.h"

#include "device/api/CudaKernelObject.h"
#include "device/cuda/Libraries.h"
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

/// Small kernels share a program; one for each core, if there are so many.
Result<std::vector<CompiledText>>
compileTexts(const std::vector<kernels::CudaText> &texts,
             const std::string &arch, device::BlobCache *cache,
             const kernels::CompileLimits &limits) {
  std::vector<CompiledText> out;
  if (texts.empty())
    return out;
  MGPU_TRY_ASSIGN(auto compiler, kernels::NvrtcCompiler::open(cache));
  constexpr size_t mostInBatch = 64;
  size_t cores = std::max(1u, std::thread::hardware_concurrency());
  size_t perBatch =
      std::clamp<size_t>((texts.size() + cores - 1) / cores, 1, mostInBatch);
  struct Job {
    std::vector<size_t> texts;
    std::string name;
  };
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
  std::vector<kernels::CompileJob> programs;
  for (const Job &job : jobs) {
    const kernels::CudaText &first = texts[job.texts.front()];
    std::vector<kernels::BatchItem> items;
    for (size_t k : job.texts)
      items.push_back({texts[k].source, texts[k].entry, texts[k].entry,
                       kernels::awaitMacros(texts[k], arch)});
    programs.push_back(
        {first.takesPart ? kernels::batchSource(items) : first.source,
         job.name + ".cu", kernels::compileOptions(first),
         kernels::archOf(first, arch)});
  }
  out.resize(texts.size());
  auto results = compiler.compileAll(programs, limits);
  for (size_t job = 0; job < jobs.size(); ++job) {
    MGPU_TRY_ASSIGN(kernels::CompiledKernel kernel, std::move(results[job]));
    if (kernels::hasWarning(kernel.log))
      fmt::print(stderr, "{}\n", kernel.log);
    auto program =
        std::make_shared<const kernels::CompiledKernel>(std::move(kernel));
    kernels::Cubin cubin = kernels::readCubin(program->cubin);
    for (size_t k : jobs[job].texts) {
      MGPU_TRY(checkEntry(texts[k], *program, cubin));
      out[k] = {program, program->find(texts[k].entry)};
    }
  }
  return out;
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
    MGPU_TRY_ASSIGN(std::vector<CompiledText> compiled,
                    compileTexts(texts, arch, cache,
                                 compileLimits(program.compileSeconds)));
    for (const CompiledText &kernel : compiled)
      cubins.push_back(kernel.program->cubin);
  }
  return kernels::cudaObjects(texts, std::move(cubins), arch,
                              kernels::hasProducts(texts) &&
                                  device::findCublasLt());
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

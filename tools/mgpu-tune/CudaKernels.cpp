// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/CudaKernels.h"

#include "device/api/CudaKernelObject.h"
#include "kernels/compile/Batch.h"
#include "kernels/compile/NvrtcCompiler.h"
#include "kernels/compile/PtxasLog.h"

#include <algorithm>
#include <fmt/format.h>
#include <thread>

namespace mgpu::tune {

/// Small kernels share a program; one for each core, if there are so many.
Result<std::vector<CompiledText>>
compileTexts(const std::vector<kernels::CudaText> &texts,
             const std::string &arch, device::BlobCache *cache) {
  std::vector<CompiledText> out;
  if (texts.empty())
    return out;
  MGPU_TRY_ASSIGN(auto compiler, kernels::NvrtcCompiler::open(cache));
  constexpr size_t mostInBatch = 32;
  size_t cores = std::max(1u, std::thread::hardware_concurrency());
  size_t perBatch =
      std::clamp<size_t>((texts.size() + cores - 1) / cores, 1, mostInBatch);
  std::vector<kernels::CompileJob> jobs;
  for (size_t first = 0; first < texts.size(); first += perBatch) {
    std::vector<kernels::BatchItem> items;
    for (size_t k = first; k < std::min(first + perBatch, texts.size()); ++k)
      items.push_back({texts[k].source, texts[k].name, texts[k].name, {}});
    jobs.push_back({kernels::batchSource(items),
                    texts[first].name + ".cu",
                    {"--fmad=false"},
                    arch});
  }
  auto results = compiler.compileAll(jobs);
  for (size_t job = 0; job < jobs.size(); ++job) {
    MGPU_TRY_ASSIGN(kernels::CompiledKernel kernel, std::move(results[job]));
    if (kernels::hasWarning(kernel.log))
      fmt::print(stderr, "{}\n", kernel.log);
    auto program =
        std::make_shared<const kernels::CompiledKernel>(std::move(kernel));
    size_t first = job * perBatch;
    for (size_t k = first; k < std::min(first + perBatch, texts.size()); ++k) {
      const kernels::EntryUsage *usage = program->find(texts[k].name);
      if (!usage)
        return fail(
            ErrorKind::Internal,
            fmt::format("NVRTC reports nothing of kernel {}", texts[k].name));
      out.push_back({program, usage});
    }
  }
  return out;
}

Result<std::vector<std::vector<std::byte>>>
cudaKernels(const Program &program, const std::string &arch,
            device::BlobCache *cache) {
  MGPU_TRY_ASSIGN(std::vector<kernels::CudaText> texts, cudaTexts(program));
  std::vector<std::vector<std::byte>> cubins;
  if (program.bundle)
    if (auto stored = program.bundle->cubins(arch))
      cubins = std::move(*stored);
  if (cubins.empty()) {
    MGPU_TRY_ASSIGN(std::vector<CompiledText> compiled,
                    compileTexts(texts, arch, cache));
    for (const CompiledText &kernel : compiled)
      cubins.push_back(kernel.program->cubin);
  }
  std::vector<std::vector<std::byte>> objects;
  for (size_t k = 0; k < texts.size(); ++k) {
    device::CudaKernelObject object;
    object.entry = texts[k].name;
    object.arch = arch;
    // As compiled without macros: the source's own shape.
    object.sourceBlock = object.block = texts[k].block;
    object.reshapable = texts[k].reshapable;
    object.dynamicSharedBytes = texts[k].dynamicSharedBytes;
    object.cubin = std::move(cubins[k]);
    objects.push_back(device::encodeCudaKernel(object));
  }
  return objects;
}

} // namespace mgpu::tune

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune kernels`.
#include "device/api/DeviceProfile.h"
#include "kernels/compile/Batch.h"
#include "kernels/compile/NvrtcCompiler.h"
#include "kernels/compile/Occupancy.h"
#include "kernels/compile/PtxasLog.h"
#include "support/FileIO.h"
#include "tools/mgpu-tune/CubinCache.h"
#include "tools/mgpu-tune/Program.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/stat.h>
#include <thread>

namespace mgpu::tune {

using nlohmann::json;

/// Small kernels share a program; one for each core, if there are so many.
static Result<std::vector<kernels::EntryUsage>>
compile(const std::vector<kernels::CudaText> &texts, const Options &options) {
  auto cache = openCubinCache(options);
  MGPU_TRY_ASSIGN(auto compiler, kernels::NvrtcCompiler::open(cache.get()));
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
                    options.arch});
  }
  std::vector<kernels::EntryUsage> usages;
  for (auto &result : compiler.compileAll(jobs)) {
    MGPU_TRY_ASSIGN(kernels::CompiledKernel kernel, std::move(result));
    if (kernels::hasWarning(kernel.log))
      fmt::print(stderr, "{}\n", kernel.log);
    usages.insert(usages.end(), kernel.entries.begin(), kernel.entries.end());
  }
  return usages;
}

static Result<void> writeTexts(const std::vector<kernels::CudaText> &texts,
                               const std::string &folder) {
  if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
    return fail(ErrorKind::Usage, fmt::format("cannot make the folder '{}': {}",
                                              folder, std::strerror(errno)));
  for (const kernels::CudaText &text : texts) {
    std::string path = folder + "/" + text.name + ".cu";
    MGPU_TRY(checkOutputPath(path));
    MGPU_TRY(writeFileAtomic(path, text.source));
  }
  return {};
}

Result<int> runKernels(const Options &options) {
  MGPU_TRY_ASSIGN(Program program, loadProgram(options, false));
  for (const planner::DagNode &node : program.dag.nodes)
    if (std::holds_alternative<planner::OpaqueCall>(node.work))
      return fail(ErrorKind::Unsupported,
                  fmt::format("'{}' is known only by its costs and has no "
                              "kernels: give the program it was made of",
                              options.file));
  MGPU_TRY_ASSIGN(std::vector<kernels::CudaText> texts, cudaTexts(program));
  // The texts need no NVRTC, so they are written before it is asked for.
  if (!options.emitFolder.empty()) {
    MGPU_TRY(writeTexts(texts, options.emitFolder));
  }
  std::vector<kernels::EntryUsage> usages;
  if (!texts.empty()) {
    MGPU_TRY_ASSIGN(usages, compile(texts, options));
  }
  const device::DeviceProfile *card =
      device::profileOfArchitecture(options.arch);
  json out{{"file", options.file}, {"arch", options.arch}};
  out["device"] = card ? json(card->name) : json();
  out["kernels"] = json::array();
  if (!options.json)
    fmt::print("{:<24} {:>10} {:>9} {:>5} {:>6} {:>9}  {}\n", "kernel", "block",
               "registers", "spill", "shared", "occupancy", "shapes");
  for (const kernels::CudaText &text : texts) {
    auto usage =
        std::find_if(usages.begin(), usages.end(),
                     [&](const auto &each) { return each.name == text.name; });
    if (usage == usages.end())
      return fail(ErrorKind::Internal,
                  fmt::format("NVRTC reports nothing of kernel {}", text.name));
    uint32_t spill = usage->spillStoreBytes + usage->spillLoadBytes;
    uint32_t shared = usage->sharedBytes + text.dynamicSharedBytes;
    // __launch_bounds__ keeps the registers of any block within the card's.
    json occupancy, mostThreads;
    std::string shown = "-";
    if (card) {
      MGPU_TRY_ASSIGN(kernels::Occupancy found,
                      kernels::occupancyOf(*usage,
                                           uint32_t(text.block.volume()),
                                           text.dynamicSharedBytes, *card));
      occupancy = found.fraction;
      mostThreads = text.reshapable ? uint64_t(card->maxThreadsPerBlock)
                                    : uint64_t(text.block.volume());
      shown = fmt::format("{:.0f} %", 100 * found.fraction);
    }
    out["kernels"].push_back(
        {{"name", text.name},
         {"block", {text.block.x, text.block.y, text.block.z}},
         {"registers", usage->registers},
         {"spill_bytes", spill},
         {"shared_bytes", shared},
         {"occupancy", occupancy},
         {"max_threads", mostThreads},
         {"reshapable", text.reshapable},
         {"reason", text.reason}});
    if (!options.json)
      fmt::print(
          "{:<24} {:>10} {:>9} {:>5} {:>6} {:>9}  {}\n", text.name,
          fmt::format("{}x{}x{}", text.block.x, text.block.y, text.block.z),
          usage->registers, spill, shared, shown,
          text.reshapable ? "any: " + text.reason : text.reason);
  }
  if (options.json)
    fmt::print("{}\n", out.dump(2));
  else if (card)
    fmt::print("{}, occupancy on {}; {} kernels\n", options.arch, card->name,
               texts.size());
  else
    fmt::print("{}; {} kernels\n", options.arch, texts.size());
  return 0;
}

} // namespace mgpu::tune

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune kernels`.
#include "device/api/DeviceProfile.h"
#include "kernels/compile/Occupancy.h"
#include "support/FileIO.h"
#include "tools/mgpu-tune/CudaKernels.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/stat.h>

namespace mgpu::tune {

using nlohmann::json;

static Result<void> writeTexts(const std::vector<CudaText> &texts,
                               const std::string &folder) {
  if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
    return fail(ErrorKind::Usage, fmt::format("cannot make the folder '{}': {}",
                                              folder, std::strerror(errno)));
  for (const CudaText &text : texts) {
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
  MGPU_TRY_ASSIGN(std::vector<CudaText> texts, emitCudaKernels(program.dag));
  // The texts need no NVRTC, so they are written before it is asked for.
  if (!options.emitFolder.empty()) {
    MGPU_TRY(writeTexts(texts, options.emitFolder));
  }
  MGPU_TRY_ASSIGN(std::vector<CompiledText> compiled,
                  compileTexts(texts, options.arch));
  const device::DeviceProfile *card =
      device::profileOfArchitecture(options.arch);
  json out{{"file", options.file}, {"arch", options.arch}};
  out["device"] = card ? json(card->name) : json();
  out["kernels"] = json::array();
  if (!options.json)
    fmt::print("{:<24} {:>10} {:>9} {:>5} {:>6} {:>9}  {}\n", "kernel", "block",
               "registers", "spill", "shared", "occupancy", "shapes");
  for (size_t k = 0; k < texts.size(); ++k) {
    const CudaText &text = texts[k];
    const kernels::EntryUsage *usage = compiled[k].usage;
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

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune kernels`.
#include "device/api/DeviceProfile.h"
#include "kernels/compile/CudaConfig.h"
#include "kernels/compile/Occupancy.h"
#include "support/FileIO.h"
#include "tools/mgpu-tune/CubinCache.h"
#include "tools/mgpu-tune/CudaKernels.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/stat.h>

namespace mgpu::tune {

using nlohmann::json;

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

namespace {

/// What all calls of a kernel do, as far as the importer counts: additions,
/// subtractions, multiplications and divisions of floats; bytes of the boxes
/// that they read and write.
struct Work {
  double flops = 0;
  uint64_t bytes = 0;
};

/// The legal configurations of a kernel, and what is not and why.
struct Survey {
  uint64_t legal = 0;
  std::vector<planner::KernelRefusal> refused;
};

} // namespace

static std::vector<Work> workOf(const planner::Dag &dag) {
  std::vector<Work> work(dag.kernels.size());
  for (const planner::DagNode &node : dag.nodes)
    if (auto *call = std::get_if<planner::KernelCall>(&node.work)) {
      work[call->kernel.value].flops += node.flops;
      work[call->kernel.value].bytes += node.bytesRead + node.bytesWritten;
    }
  return work;
}

static Survey survey(const planner::KernelSpace &space,
                     const device::DeviceProfile *card) {
  Survey result;
  planner::KernelRefusal ofCard;
  for (const auto &config : space.legal(UINT64_MAX, &result.refused)) {
    Result<void> ok;
    if (card)
      ok = kernels::checkOnDevice(space, config, *card);
    if (ok)
      ++result.legal;
    else if (ofCard.count++ == 0)
      ofCard = {fmt::format("limits of {}", card->name), 1, config,
                ok.error().message};
  }
  if (ofCard.count > 0)
    result.refused.push_back(std::move(ofCard));
  return result;
}

static json spaceJson(const planner::KernelSpace &space, const Survey &survey) {
  json parameters = json::object(), refused = json::array();
  for (const planner::KernelChoice &choice : space.choices) {
    json &one = parameters[std::string(toString(choice.parameter))];
    one["values"] = choice.values;
    if (!choice.reason.empty())
      one["reason"] = choice.reason;
  }
  json tunables = json::object();
  for (const planner::KernelTunable &tunable : space.tunables)
    tunables[tunable.name] = tunable.values;
  for (const planner::KernelRefusal &each : survey.refused)
    refused.push_back({{"rule", each.rule},
                       {"count", each.count},
                       {"example", toText(each.example)},
                       {"reason", each.reason}});
  return {{"legal", survey.legal},
          {"product", space.productSize()},
          {"parameters", std::move(parameters)},
          {"tunables", std::move(tunables)},
          {"refused", std::move(refused)}};
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
  auto cache = openCubinCache(options);
  MGPU_TRY_ASSIGN(std::vector<CompiledText> compiled,
                  compileTexts(texts, options.arch, cache.get()));
  const device::DeviceProfile *card =
      device::profileOfArchitecture(options.arch);
  json out{{"file", options.file}, {"arch", options.arch}};
  out["device"] = card ? json(card->name) : json();
  out["kernels"] = json::array();
  if (!options.json)
    fmt::print("{:<24} {:>10} {:>9} {:>5} {:>6} {:>9} {:>7} {:>7}  {}\n",
               "kernel", "block", "registers", "spill", "shared", "occupancy",
               "flop/B", "configs", "shapes");
  std::vector<Work> work = workOf(program.dag);
  for (size_t k = 0; k < texts.size(); ++k) {
    const kernels::CudaText &text = texts[k];
    std::optional<Survey> space;
    if (text.space)
      space = survey(*text.space, card);
    json intensity;
    if (work[k].bytes > 0)
      intensity = work[k].flops / double(work[k].bytes);
    const kernels::EntryUsage *usage = compiled[k].usage;
    uint32_t spill = usage->spillStoreBytes + usage->spillLoadBytes;
    uint32_t shared = usage->sharedBytes + text.dynamicSharedBytes;
    // __launch_bounds__ keeps the registers of any block within the card's.
    json occupancy, mostThreads;
    std::string shown = "-";
    if (card) {
      MGPU_TRY_ASSIGN(kernels::Occupancy found,
                      kernels::occupancyOf(*usage,
                                           uint32_t(text.launchBlock.volume()),
                                           text.dynamicSharedBytes, *card));
      occupancy = found.fraction;
      mostThreads = text.reshapable ? uint64_t(card->maxThreadsPerBlock)
                                    : uint64_t(text.launchBlock.volume());
      shown = fmt::format("{:.0f} %", 100 * found.fraction);
    }
    out["kernels"].push_back(
        {{"name", text.name},
         {"entry", text.entry},
         {"block", {text.block.x, text.block.y, text.block.z}},
         {"registers", usage->registers},
         {"spill_bytes", spill},
         {"shared_bytes", shared},
         {"occupancy", occupancy},
         {"max_threads", mostThreads},
         {"reshapable", text.reshapable},
         {"reason", text.reason},
         {"flops", work[k].flops},
         {"bytes", work[k].bytes},
         {"arithmetic_intensity", intensity},
         {"space", space ? spaceJson(*text.space, *space) : json()}});
    if (!options.json)
      fmt::print(
          "{:<24} {:>10} {:>9} {:>5} {:>6} {:>9} {:>7} {:>7}  {}\n", text.name,
          fmt::format("{}x{}x{}", text.block.x, text.block.y, text.block.z),
          usage->registers, spill, shared, shown,
          intensity.is_null() ? "-" : fmt::format("{:.2f}", double(intensity)),
          space ? fmt::to_string(space->legal) : "-",
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

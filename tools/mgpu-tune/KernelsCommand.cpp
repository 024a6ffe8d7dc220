// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune kernels`.
#include "pipeline/build/KernelListing.h"
#include "pipeline/build/Kernels.h"
#include "pipeline/program/Load.h"
#include "pipeline/target/OpenMachine.h"
#include "support/FileIO.h"
#include "support/Units.h"
#include "tools/mgpu-tune/FileUses.h"
#include "tools/mgpu-tune/JsonOutput.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sys/stat.h>

namespace mgpu::tools {

using nlohmann::json;

namespace {

/// The work of all calls of a kernel, as far as the importer counts it:
/// additions, subtractions, multiplications and divisions of floats; bytes of
/// the boxes that they read and write.
struct Work {
  double flops = 0;
  uint64_t bytes = 0;
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

static json spaceJson(const kernels::KernelSpace &space, const Survey &survey) {
  json parameters = json::object(), tunables = json::object(),
       refused = json::array();
  for (size_t k = 0; k < space.axes.size(); ++k) {
    const auto &[name, values, reason] = space.axes[k];
    if (k >= kernels::numKernelParameters) {
      tunables[name] = values;
      continue;
    }
    parameters[name]["values"] = values;
    if (!reason.empty())
      parameters[name]["reason"] = reason;
  }
  for (const kernels::KernelRefusal &each : survey.refused)
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

/// The JSON fields that a text and a candidate for its place have in common.
static json listedJson(const Listed &listed, const device::DeviceProfile *gpu) {
  const kernels::CudaText &text = *listed.text;
  json out{
      {"name", text.name},
      {"form", text.form},
      {"entry", text.image.entry},
      {"enabled", text.disabled.empty() || listed.isUsed},
      {"reason", text.disabled.empty() ? text.reason : listed.disabled},
      {"reshapable", text.reshapable},
      {"launch_block",
       {text.image.block.x, text.image.block.y, text.image.block.z}},
      {"source", text.image.blob},
      {"space", listed.space ? spaceJson(*text.space, *listed.space) : json()}};
  if (listed.error)
    out["error"] = errorObject(*listed.error);
  if (listed.predicted)
    out["predicted"] = {{"default_us", listed.predicted->defaultUs},
                        {"best_us", listed.predicted->bestUs},
                        {"best", toText(listed.predicted->best)}};
  if (!listed.usage)
    return out;
  out["registers"] = listed.usage->registers;
  out["spill_bytes"] = listed.spill;
  out["shared_bytes"] = listed.shared;
  out["occupancy"] = listed.occupancy ? json(*listed.occupancy) : json();
  // __launch_bounds__ keeps the registers of any block within the GPU's.
  out["max_threads"] = !gpu              ? json()
                       : text.reshapable ? json(gpu->maxThreadsPerBlock)
                                         : json(text.image.block.volume());
  return out;
}

static void printLine(const Listed &listed, const std::string &intensity) {
  const kernels::CudaText &text = *listed.text;
  bool isCompiled = listed.usage != nullptr;
  fmt::print(
      "{:<24} {:>10} {:>9} {:>5} {:>6} {:>9} {:>7} {:>7}  {}\n",
      text.disabled.empty() ? text.name : "  " + text.form,
      text.image.blob.empty()
          ? "-"
          : fmt::format("{}x{}x{}", text.image.block.x, text.image.block.y,
                        text.image.block.z),
      isCompiled ? fmt::to_string(listed.usage->registers) : "-",
      isCompiled ? fmt::to_string(listed.spill) : "-",
      isCompiled ? fmt::to_string(listed.shared) : "-",
      listed.occupancy ? fmt::format("{:.0f} %", 100 * *listed.occupancy) : "-",
      intensity, listed.space ? fmt::to_string(listed.space->legal) : "-",
      listed.error             ? listed.error->message
      : listed.isUsed          ? listed.disabled
      : !text.disabled.empty() ? "not used: " + listed.disabled
      : text.reshapable        ? "any: " + text.reason
                               : text.reason);
}

namespace {

Result<void> writeTexts(const KernelListing &listing,
                        const KernelsOptions &options) {
  const std::string &folder = options.emitFolder;
  if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
    return fail(ErrorKind::Usage, fmt::format("cannot make the folder '{}': {}",
                                              folder, std::strerror(errno)));
  FileUses uses = filesRead(options.load);
  const auto beside = std::filesystem::path(options.load.file).parent_path();
  for (const planner::KernelSpec &kernel : listing.program.dag.kernels)
    if (const planner::CudaFile *file = kernel.cudaFile())
      uses.read("the program", (beside / file->file).string());
  auto pathOf = [&](const kernels::CudaText &text) {
    return folder + "/" + text.name + ".cu";
  };
  for (size_t k : listing.compiled)
    MGPU_TRY(uses.write("--emit", pathOf(*listing.all[k].text)));
  for (size_t k : listing.compiled)
    MGPU_TRY(writeFileAtomic(pathOf(*listing.all[k].text),
                             listing.all[k].text->image.blob));
  return {};
}

void print(const KernelListing &listing, const KernelsOptions &options) {
  const device::DeviceProfile *gpu = listing.gpu;
  json out{{"file", options.load.file}, {"arch", options.arch}};
  out["device"] = gpu ? json(gpu->name) : json();
  out["kernels"] = json::array();
  if (!options.json)
    fmt::print("{:<24} {:>10} {:>9} {:>5} {:>6} {:>9} {:>7} {:>7}  {}\n",
               "kernel", "block", "registers", "spill", "shared", "occupancy",
               "flop/B", "configs", "shapes");
  const std::vector<Work> work = workOf(listing.program.dag);
  for (const Listed &listed : listing.all) {
    const kernels::CudaText &text = *listed.text;
    if (!text.disabled.empty()) {
      out["kernels"].back()["candidates"].push_back(listedJson(listed, gpu));
      if (!options.json)
        printLine(listed, "-");
      continue;
    }
    const Work &done = work[listed.kernel];
    json intensity;
    if (done.bytes > 0 && text.form != "file") // whose work nobody knows
      intensity = done.flops / double(done.bytes);
    json kernel = listedJson(listed, gpu);
    kernel["block"] = {text.image.sourceBlock.x, text.image.sourceBlock.y,
                       text.image.sourceBlock.z};
    kernel["flops"] = done.flops;
    kernel["bytes"] = done.bytes;
    kernel["arithmetic_intensity"] = intensity;
    kernel["candidates"] = json::array();
    out["kernels"].push_back(std::move(kernel));
    if (!options.json)
      printLine(listed, intensity.is_null()
                            ? "-"
                            : fmt::format("{:.2f}", double(intensity)));
  }
  if (options.json)
    tools::printJson(out);
  else if (gpu)
    fmt::print("{}, occupancy on {}; {}\n", options.arch, gpu->name,
               counted(listing.texts.size(), "kernel"));
  else
    fmt::print("{}; {}\n", options.arch,
               counted(listing.texts.size(), "kernel"));
}

/// "block_y=32 MGPU_STAGE=1": what is not as it is by default.
std::string changesText(const kernels::KernelSpace &space,
                        const kernels::KernelConfig &config) {
  std::string text;
  for (size_t k = 0; k < space.axes.size(); ++k)
    if (config.at(k) != space.defaults.at(k))
      text += fmt::format("{}{}={}", text.empty() ? "" : " ",
                          space.axes[k].name, config.at(k));
  return text.empty() ? "the default" : text;
}

void printPredicted(const KernelListing &listing,
                    const planner::Machine &machine) {
  fmt::print("\n{:<24} {:>10} {:>10}  {}\n", "predicted", "default us",
             "best us", "best configuration");
  for (const Listed &listed : listing.all)
    if (const auto &found = listed.predicted)
      fmt::print("{:<24} {:>10.2f} {:>10.2f}  {}\n", listed.text->name,
                 found->defaultUs, found->bestUs,
                 changesText(*listed.text->space, found->best));
  fmt::print("a launch on {}, the largest of each kernel\n", machine.name());
}

} // namespace

/// The machine that --target names, and its architecture; none: it names none.
static Result<std::optional<planner::Machine>>
machineOf(const KernelsOptions &options, std::string &arch) {
  using Machine = std::optional<planner::Machine>;
  const std::string &target = options.load.target;
  if (target.empty())
    return Machine();
  if (!target.starts_with("sim:"))
    return fail(ErrorKind::Usage,
                fmt::format("--target {}: kernels are predicted for a machine "
                            "sim:NAME; --arch says what they are compiled for",
                            target));
  MGPU_TRY_ASSIGN(auto machine, openMachine(target, 1));
  if (!options.load.given.contains("--arch"))
    arch = fmt::format("sm_{}", machine.topology().device.architecture);
  return Machine(std::move(machine));
}

Result<int> runKernels(const KernelsOptions &asked) {
  KernelsOptions options = asked;
  MGPU_TRY_ASSIGN(const auto machine, machineOf(asked, options.arch));
  MGPU_TRY_ASSIGN(LoadedProgram program, loadProgram(options.load));
  MGPU_TRY(checkHasKernels(program, "has no kernels"));
  auto cache = openCubinCache(options.load.database);
  MGPU_TRY_ASSIGN(const auto emitted, eachCudaText(program, cache.get()));
  MGPU_TRY(checkPdl(program.variants.isAsked(Variant::Pdl), options.arch));
  KernelListing listing{program, options.arch,
                        device::profileOfArchitecture(options.arch)};
  listing.list(emitted);
  // The texts need no NVRTC, so they are written before it is asked for.
  if (!options.emitFolder.empty())
    MGPU_TRY(writeTexts(listing, options));
  listing.checkLaunches();
  if (machine)
    listing.predict(*machine);
  MGPU_TRY(listing.compile(cache.get(), options.load.compileSeconds));
  print(listing, options);
  if (machine && !options.json)
    printPredicted(listing, *machine);
  for (const Listed &listed : listing.all)
    if (listed.error)
      return fail(*listed.error);
  return 0;
}

} // namespace mgpu::tools

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune kernels`.
#include "device/api/DeviceProfile.h"
#include "device/cuda/api/Libraries.h"
#include "kernels/compile/CudaConfig.h"
#include "kernels/space/Occupancy.h"
#include "support/FileIO.h"
#include "support/Plural.h"
#include "tools/mgpu-tune/CubinCache.h"
#include "tools/mgpu-tune/CudaKernels.h"
#include "tools/mgpu-tune/FileUses.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sys/stat.h>

namespace mgpu::tune {

using nlohmann::json;

/// Of the first line that a #line names.
static std::string sourceFile(std::string_view text) {
  constexpr std::string_view mark = "#line 1 \"";
  const size_t at = text.find(mark);
  if (at == text.npos)
    return "";
  text.remove_prefix(at + mark.size());
  return std::string(text.substr(0, text.find('"')));
}

static Result<void> writeTexts(const std::vector<kernels::CudaText> &texts,
                               const Options &options) {
  const std::string &folder = options.emitFolder;
  if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
    return fail(ErrorKind::Usage, fmt::format("cannot make the folder '{}': {}",
                                              folder, std::strerror(errno)));
  FileUses uses = filesRead(options);
  for (const kernels::CudaText &text : texts)
    if (text.form == "file") { // a text of the user's own
      const std::filesystem::path source = sourceFile(text.source);
      uses.read("the program",
                (std::filesystem::path(options.file).parent_path() / source)
                    .string());
    }
  auto pathOf = [&](const kernels::CudaText &text) {
    return folder + "/" + text.name + ".cu";
  };
  for (const kernels::CudaText &text : texts)
    MGPU_TRY(uses.write("--emit", pathOf(text)));
  for (const kernels::CudaText &text : texts)
    MGPU_TRY(writeFileAtomic(pathOf(text), text.source));
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

namespace {

/// A text, as it is listed.
struct Listed {
  const kernels::CudaText *text = nullptr;
  std::string disabled;       ///< why it is not used, on this architecture
  bool isUsed = false;        ///< or that it is, in its kernel's place
  size_t kernel = 0;          ///< by KernelId
  std::optional<Error> error; ///< why it is not emitted, or not compiled
  std::optional<Survey> space;
  const kernels::EntryUsage *usage = nullptr; ///< null if it is not compiled
  uint32_t spill = 0, shared = 0;
  std::optional<double> occupancy;
};

} // namespace

static Result<void> measure(Listed &listed, const CompiledText &compiled,
                            const device::DeviceProfile *card) {
  const kernels::CudaText &text = *listed.text;
  listed.usage = compiled.usage;
  listed.spill = listed.usage->spillStoreBytes + listed.usage->spillLoadBytes;
  listed.shared = listed.usage->sharedBytes + text.dynamicSharedBytes;
  if (!card)
    return {};
  MGPU_TRY_ASSIGN(kernels::Occupancy found,
                  kernels::occupancyOf(*listed.usage,
                                       uint32_t(text.launchBlock.volume()),
                                       text.dynamicSharedBytes, *card));
  listed.occupancy = found.fraction;
  return {};
}

/// What a text and a candidate for its place have in common.
static json listedJson(const Listed &listed,
                       const device::DeviceProfile *card) {
  const kernels::CudaText &text = *listed.text;
  json out{
      {"name", text.name},
      {"form", text.form},
      {"entry", text.entry},
      {"enabled", text.disabled.empty() || listed.isUsed},
      {"reason", text.disabled.empty() ? text.reason : listed.disabled},
      {"reshapable", text.reshapable},
      {"launch_block",
       {text.launchBlock.x, text.launchBlock.y, text.launchBlock.z}},
      {"source", text.source},
      {"space", listed.space ? spaceJson(*text.space, *listed.space) : json()}};
  if (listed.error)
    out["error"] = listed.error->message;
  if (!listed.usage)
    return out;
  out["registers"] = listed.usage->registers;
  out["spill_bytes"] = listed.spill;
  out["shared_bytes"] = listed.shared;
  out["occupancy"] = listed.occupancy ? json(*listed.occupancy) : json();
  // __launch_bounds__ keeps the registers of any block within the card's.
  out["max_threads"] = !card             ? json()
                       : text.reshapable ? json(card->maxThreadsPerBlock)
                                         : json(text.launchBlock.volume());
  return out;
}

static void printLine(const Listed &listed, const std::string &intensity) {
  const kernels::CudaText &text = *listed.text;
  bool isCompiled = listed.usage != nullptr;
  fmt::print(
      "{:<24} {:>10} {:>9} {:>5} {:>6} {:>9} {:>7} {:>7}  {}\n",
      text.disabled.empty() ? text.name : "  " + text.form,
      text.source.empty() ? "-"
                          : fmt::format("{}x{}x{}", text.launchBlock.x,
                                        text.launchBlock.y, text.launchBlock.z),
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

Result<int> runKernels(const Options &options) {
  MGPU_TRY_ASSIGN(Program program, loadProgram(options, false));
  for (const planner::DagNode &node : program.dag.nodes)
    if (std::holds_alternative<planner::OpaqueCall>(node.work))
      return fail(ErrorKind::Unsupported,
                  fmt::format("'{}' is known only by its costs and has no "
                              "kernels: give the program it was made of",
                              options.file));
  auto cache = openCubinCache(options);
  MGPU_TRY_ASSIGN(auto emitted, eachCudaText(program, cache.get()));
  MGPU_TRY(checkPdl(options.pdl, options.arch));
  std::vector<kernels::CudaText> texts;
  for (size_t k = 0; k < emitted.size(); ++k) {
    const planner::KernelSpec &spec = program.dag.kernels[k];
    kernels::CudaText none;
    none.name = spec.name;
    none.block = none.launchBlock = spec.block;
    texts.push_back(emitted[k] ? std::move(*emitted[k]) : std::move(none));
  }
  const device::DeviceProfile *card =
      device::profileOfArchitecture(options.arch);
  // Each kernel's text, then the candidates for its place.
  std::vector<Listed> all;
  std::vector<kernels::CudaText> sources;
  std::vector<size_t> compiledAs;
  for (size_t k = 0; k < texts.size(); ++k) {
    auto add = [&](const kernels::CudaText &text) {
      Listed &listed = all.emplace_back();
      listed.text = &text;
      listed.kernel = k;
      if (!emitted[k])
        listed.error = emitted[k].error();
      // What is used is compiled, and fails where it cannot be.
      std::string refusal =
          text.disabled.empty() ? "" : kernels::archRefusal(text, options.arch);
      bool isFor = refusal.empty();
      listed.disabled =
          isFor || text.source.empty() ? text.disabled : std::move(refusal);
      if (text.product && text.form == "cublaslt" && texts[k].product) {
        // Known only where the card is; here, of this machine.
        auto library = device::findCublasLt();
        listed.isUsed = library.has_value();
        listed.disabled =
            library ? fmt::format("used in its kernel's place, where a card "
                                  "has it (here {})",
                                  library->version)
                    : library.error().message;
      }
      compiledAs.push_back(text.source.empty() || !isFor ? SIZE_MAX
                                                         : sources.size());
      if (compiledAs.back() != SIZE_MAX)
        sources.push_back(text);
    };
    add(texts[k]);
    for (const kernels::CudaText &candidate : texts[k].candidates)
      add(candidate);
  }
  // The texts need no NVRTC, so they are written before it is asked for.
  if (!options.emitFolder.empty()) {
    MGPU_TRY(writeTexts(sources, options));
  }
  // Nor is a launch compiled that the card cannot hold.
  std::vector<kernels::CudaText> launchable;
  for (size_t k = 0; k < all.size(); ++k) {
    if (compiledAs[k] == SIZE_MAX)
      continue;
    const kernels::CudaText &text = *all[k].text;
    Result<void> fits;
    if (card && text.space)
      fits = kernels::checkOnDevice(*text.space, text.space->defaults, *card);
    if (fits) {
      compiledAs[k] = launchable.size();
      launchable.push_back(text);
      continue;
    }
    compiledAs[k] = SIZE_MAX;
    all[k].error = errorAt(
        program.dag.kernels[all[k].kernel].location,
        Error{fits.error().kind, fmt::format("kernel '{}' as it is launched "
                                             "has {}",
                                             text.name, fits.error().message)});
  }
  MGPU_TRY_ASSIGN(auto compiled,
                  compileTexts(launchable, options.arch, cache.get(),
                               compileLimits(options.compileSeconds)));
  for (size_t k = 0; k < all.size(); ++k) {
    if (all[k].text->space && compiledAs[k] != SIZE_MAX)
      all[k].space = survey(*all[k].text->space, card);
    if (compiledAs[k] == SIZE_MAX)
      continue;
    Result<CompiledText> &text = compiled[compiledAs[k]];
    if (text)
      MGPU_TRY(measure(all[k], *text, card));
    else
      all[k].error = errorAt(program.dag.kernels[all[k].kernel].location,
                             std::move(text.error()));
  }
  json out{{"file", options.file}, {"arch", options.arch}};
  out["device"] = card ? json(card->name) : json();
  out["kernels"] = json::array();
  if (!options.json)
    fmt::print("{:<24} {:>10} {:>9} {:>5} {:>6} {:>9} {:>7} {:>7}  {}\n",
               "kernel", "block", "registers", "spill", "shared", "occupancy",
               "flop/B", "configs", "shapes");
  std::vector<Work> work = workOf(program.dag);
  for (const Listed &listed : all) {
    const kernels::CudaText &text = *listed.text;
    if (!text.disabled.empty()) {
      out["kernels"].back()["candidates"].push_back(listedJson(listed, card));
      if (!options.json)
        printLine(listed, "-");
      continue;
    }
    const Work &done = work[listed.kernel];
    json intensity;
    if (done.bytes > 0 && text.form != "file") // whose work nobody knows
      intensity = done.flops / double(done.bytes);
    json kernel = listedJson(listed, card);
    kernel["block"] = {text.block.x, text.block.y, text.block.z};
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
    fmt::print("{}\n", out.dump(2));
  else if (card)
    fmt::print("{}, occupancy on {}; {}\n", options.arch, card->name,
               counted(texts.size(), "kernel"));
  else
    fmt::print("{}; {}\n", options.arch, counted(texts.size(), "kernel"));
  for (const Listed &listed : all)
    if (listed.error)
      return fail(*listed.error);
  return 0;
}

} // namespace mgpu::tune

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune bundle`.
#include "kernels/compile/NvrtcCompiler.h"
#include "kernels/compile/PtxasLog.h"
#include "support/FileIO.h"
#include "support/Parallel.h"
#include "support/Plural.h"
#include "support/Sha256.h"
#include "tools/mgpu-tune/Compiler.h"
#include "tools/mgpu-tune/CubinCache.h"
#include "tools/mgpu-tune/CudaKernels.h"
#include "tools/mgpu-tune/FileUses.h"
#include "tools/mgpu-tune/Target.h"
#include "tools/mgpu-tune/Tuned.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <sys/stat.h>

namespace mgpu::tune {

using nlohmann::json;

namespace {

/// Of a regular file; what came from a pipe is gone.
Result<std::string> hashOf(const std::string &path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode))
    return std::string();
  MGPU_TRY_ASSIGN(std::vector<std::byte> bytes, readFile(path));
  return Sha256().add(std::span<const std::byte>(bytes)).hex();
}

Result<db::ProgramRecord> originOf(const Options &options) {
  db::ProgramRecord origin;
  origin.entry = options.entry;
  origin.source = options.file;
  origin.version = MGPU_VERSION;
  for (const auto &[key, value] : options.arguments)
    origin.options += fmt::format("arg {}={}\n", key, value);
  for (const auto &[key, value] : options.roles)
    origin.options += fmt::format("role {}={}\n", key, value);
  origin.options += fmt::format("roll-from {}\n", options.rollFrom);
  if (!options.fuse)
    origin.options += "no-fusion\n";
  MGPU_TRY_ASSIGN(origin.sourceHash, hashOf(options.file));
  return origin;
}

/// Only a level that lacks what a kernel needs may be left out, and not the
/// last one; but a kernel that is a file of CUDA C++ has no form for the host.
/// `choice` is what was tuned, or null.
Result<void> addHostKernels(const Program &program, const Options &options,
                            const TunedChoice *choice,
                            std::vector<capture::KernelForms> &kernels) {
  const bool forCardsAlone =
      std::any_of(kernels.begin(), kernels.end(), [](const auto &kernel) {
        return kernel.cuda && !kernel.cuda->image.takesPart;
      });
  std::vector<std::string> levels = options.bundleLevels;
  std::sort(levels.begin(), levels.end());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  Error last;
  size_t added = 0;
  for (const std::string &level : levels) {
    auto objects = choice ? compileConfig(program, choice->context,
                                          choice->config, options, level)
                          : compileKernels(program.dag, level);
    if (!objects && objects.error().kind == ErrorKind::Unsupported) {
      fmt::print(stderr, "mgpu-tune: note: no kernels for {}: {}\n",
                 forCardsAlone ? "the host" : level, objects.error().message);
      if (forCardsAlone)
        return {};
      last = objects.error();
      continue;
    }
    if (!objects)
      return fail(std::move(objects.error()));
    ++added;
    for (size_t k = 0; k < objects->size(); ++k)
      kernels[k].host.emplace(level, std::move((*objects)[k]));
  }
  if (added == 0)
    return fail(std::move(last));
  return {};
}

/// Each kernel in --alternatives more ways near the one that is taken.
Result<void> addAlternatives(const planner::Dag &dag, const Options &options,
                             const TunedChoice *choice,
                             std::vector<capture::KernelForms> &kernels) {
  if (options.alternatives == 0 || kernels.front().host.empty())
    return {};
  std::vector<planner::KernelSpace> spaces;
  if (choice) {
    spaces = choice->context.spaces;
  } else {
    MGPU_TRY_ASSIGN(spaces, hostKernelSpaces(dag));
  }
  struct Way {
    uint32_t kernel;
    const std::string *level;
    planner::KernelConfig config;
    Result<std::vector<std::byte>> object;
  };
  std::vector<Way> ways;
  for (uint32_t k = 0; k < kernels.size(); ++k) {
    const planner::KernelConfig taken =
        choice ? choice->config.kernels[k] : spaces[k].defaults;
    kernels[k].hostSpace =
        planner::narrowed(spaces[k], taken, options.alternatives + 1,
                          "the bundle has it built with one value");
    for (const planner::KernelConfig &config : kernels[k].hostSpace->legal())
      if (config != taken)
        for (const auto &[level, object] : kernels[k].host)
          ways.push_back({k, &level, config, {}});
  }
  parallelFor(ways.size(), 0, [&](size_t w) {
    Way &way = ways[w];
    way.object = buildHostKernel(dag, {way.kernel}, spaces[way.kernel],
                                 way.config, *way.level);
  });
  for (Way &way : ways) {
    MGPU_TRY_ASSIGN(auto object, std::move(way.object));
    kernels[way.kernel].alternatives[*way.level].emplace(way.config,
                                                         std::move(object));
  }
  return {};
}

Result<void> addCubins(const Options &options,
                       std::vector<capture::KernelForms> &kernels) {
  auto cache = openCubinCache(options);
  MGPU_TRY_ASSIGN(auto compiler, kernels::NvrtcCompiler::open(cache.get()));
  for (const std::string &arch : options.bundleArchs) {
    MGPU_TRY(checkPdl(options.pdl, arch));
    std::vector<kernels::CompileJob> jobs;
    for (const capture::KernelForms &kernel : kernels) {
      jobs.push_back({kernel.cuda->image.blob, kernel.cuda->name + ".cu",
                      kernels::compileOptions(*kernel.cuda),
                      kernels::archOf(*kernel.cuda, arch)});
      for (auto &[name, value] : kernels::awaitMacros(*kernel.cuda, arch))
        jobs.back().options.push_back(fmt::format("-D{}={}", name, value));
    }
    auto compiled =
        compiler.compileAll(jobs, compileLimits(options.compileSeconds));
    for (size_t k = 0; k < compiled.size(); ++k) {
      if (!compiled[k])
        return fail(std::move(compiled[k].error()));
      if (kernels::hasWarning(compiled[k]->log))
        fmt::print(stderr, "{}\n", compiled[k]->log);
      MGPU_TRY(checkEntry(*kernels[k].cuda, *compiled[k],
                          kernels::readCubin(compiled[k]->cubin)));
      kernels[k].cubins.insert_or_assign(arch, std::move(compiled[k]->cubin));
    }
  }
  return {};
}

/// Without --arch a kernel that CUDA C++ cannot express is no hindrance.
Result<void> addCudaKernels(const Program &program, const Options &options,
                            std::vector<capture::KernelForms> &kernels) {
  auto texts = cudaTexts(program, nullptr);
  if (!texts && options.bundleArchs.empty() &&
      texts.error().kind == ErrorKind::Unsupported) {
    fmt::print(stderr, "mgpu-tune: note: no CUDA C++ in the bundle: {}\n",
               texts.error().message);
    return {};
  }
  if (!texts)
    return fail(std::move(texts.error()));
  for (size_t k = 0; k < texts->size(); ++k)
    kernels[k].cuda = std::move((*texts)[k]);
  if (options.bundleArchs.empty() || kernels.empty())
    return {};
  return addCubins(options, kernels);
}

} // namespace

Result<int> runBundle(const Options &options) {
  MGPU_TRY(checkFiles(options));
  MGPU_TRY(checkSeed(options));
  MGPU_TRY_ASSIGN(Program program, loadProgram(options, false));
  if (program.bundle)
    return fail(ErrorKind::Usage,
                fmt::format("'{}' is a bundle already: give the program it was "
                            "made of, {}",
                            options.file, program.bundle->origin().source));
  for (const planner::DagNode &node : program.dag.nodes)
    if (std::holds_alternative<planner::OpaqueCall>(node.work))
      return fail(ErrorKind::Unsupported,
                  fmt::format("'{}' is known only by its costs and cannot run: "
                              "give the program it was made of",
                              options.file));
  if (!options.target.empty())
    MGPU_TRY(targetDevices(options.target, program.dag.numDevices));
  capture::BundleContents contents;
  MGPU_TRY_ASSIGN(contents.origin, originOf(options));
  MGPU_TRY_ASSIGN(auto choice, findTuned(program, options));
  if (choice && !choice->isTuned)
    choice.reset(); // what was profiled here is not what others have
  if (choice && options.planFile.empty()) {
    MGPU_TRY(transformChosen(program, *choice));
    MGPU_TRY_ASSIGN(contents.plan, tuner::planFor(program.dag, choice->config));
    contents.threads = choice->config.lanes;
  } else {
    MGPU_TRY_ASSIGN(contents.plan, planFor(program, options));
  }
  // What is stored is the program as the transforms left it.
  if (!contents.plan.transforms.empty())
    contents.origin.options += fmt::format(
        "transforms {}\n", fmt::join(contents.plan.transforms, ","));
  contents.plan.transforms.clear();
  contents.kernels.resize(program.dag.kernels.size());
  if (!contents.kernels.empty()) {
    MGPU_TRY(addCudaKernels(program, options, contents.kernels));
    MGPU_TRY(addHostKernels(program, options, choice ? &*choice : nullptr,
                            contents.kernels));
    MGPU_TRY(addAlternatives(program.dag, options, choice ? &*choice : nullptr,
                             contents.kernels));
  }
  if (!options.bundleArchs.empty()) {
    MGPU_TRY_ASSIGN(contents.own, compileOwn(program.dag, options.bundleArchs,
                                             openCubinCache(options).get()));
  }
  contents.program = std::move(program);
  MGPU_TRY(capture::writeBundle(options.bundleFile, contents));

  uint64_t bytes = fileSize(options.bundleFile).value_or(0);
  std::vector<std::string> levels, archs;
  if (!contents.kernels.empty()) {
    for (const auto &[level, object] : contents.kernels[0].host)
      levels.push_back(level);
    for (const auto &[arch, cubin] : contents.kernels[0].cubins)
      archs.push_back(arch);
  }
  if (options.json) {
    json out{{"file", options.bundleFile},
             {"source", options.file},
             {"bytes", bytes},
             {"nodes", contents.program.dag.nodes.size()},
             {"kernels", contents.kernels.size()},
             {"tuned", choice.has_value()},
             {"cpu", levels},
             {"arch", archs}};
    fmt::print("{}\n", out.dump(2));
    return 0;
  }
  std::string forms;
  for (const auto *each : {&levels, &archs})
    for (const std::string &form : *each)
      forms += (forms.empty() ? " for " : ", ") + form;
  fmt::print("{}: {} bytes: {}, {}{}\n", options.bundleFile, bytes,
             counted(contents.program.dag.nodes.size(), "node"),
             counted(contents.kernels.size(), "kernel"), forms);
  return 0;
}

} // namespace mgpu::tune

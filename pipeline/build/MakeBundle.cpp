// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/build/MakeBundle.h"

#include "pipeline/build/Kernels.h"
#include "pipeline/program/Compiler.h"
#include "planner/dag/Dag.h"
#include "support/FileIO.h"
#include "support/Parallel.h"
#include "support/Progress.h"
#include "support/Sha256.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <sys/stat.h>

namespace mgpu::pipeline {

namespace {

// The paths that a bundle holds, so that equal programs give equal bytes
// wherever they are.

class PathMap {
public:
  /// `prefixes`: a path that begins with a key has the value in its place; the
  /// longest key wins. Other paths in the folder of `programFile` lose that
  /// folder.
  PathMap(const std::string &programFile,
          const std::map<std::string, std::string> &prefixes);

  /// "mlp.mlir:3:5" for "/home/me/mlp.mlir:3:5" in the program's own folder.
  std::string operator()(const std::string &path) const;
  /// `text` of MLIR or C++; its locations, `"path":line:column` and
  /// `#line N "path"`, are mapped.
  std::string inText(const std::string &text) const;
  /// The places of nodes and kernels, and of the operations in kernels' texts.
  void apply(planner::Dag &dag) const;

private:
  std::map<std::string, std::string> prefixes;
};

PathMap::PathMap(const std::string &programFile,
                 const std::map<std::string, std::string> &prefixes)
    : prefixes(prefixes) {
  // emplace: what the user says of the folder holds.
  const auto slash = programFile.rfind('/');
  if (slash != std::string::npos)
    this->prefixes.emplace(programFile.substr(0, slash), "");
}

std::string PathMap::operator()(const std::string &path) const {
  const std::pair<const std::string, std::string> *best = nullptr;
  for (const auto &each : prefixes) {
    const std::string &prefix = each.first;
    const bool isWithin = path.starts_with(prefix) &&
                          (path.size() == prefix.size() ||
                           prefix.ends_with('/') || path[prefix.size()] == '/');
    if (isWithin && (!best || prefix.size() > best->first.size()))
      best = &each;
  }
  if (!best)
    return path;
  std::string rest = path.substr(best->first.size());
  if (best->second.empty() && rest.starts_with('/'))
    rest.erase(0, 1);
  return best->second + rest;
}

/// Whether the string in `text` between the quotes at `open` and `close` is the
/// path of a location of MLIR or of a #line of C.
static bool isPath(const std::string &text, size_t open, size_t close) {
  if (close + 2 < text.size() && text[close + 1] == ':' &&
      std::isdigit(static_cast<unsigned char>(text[close + 2])))
    return true;
  const size_t line = text.rfind('\n', open) + 1;
  return text.compare(line, 6, "#line ") == 0;
}

std::string PathMap::inText(const std::string &text) const {
  std::string mapped;
  size_t done = 0;
  for (size_t open = text.find('"'); open != std::string::npos;) {
    const size_t close = text.find('"', open + 1);
    if (close == std::string::npos)
      break;
    if (isPath(text, open, close)) {
      mapped.append(text, done, open + 1 - done);
      mapped += (*this)(text.substr(open + 1, close - open - 1));
      done = close;
    }
    open = text.find('"', close + 1);
  }
  return mapped.append(text, done);
}

void PathMap::apply(planner::Dag &dag) const {
  // A location may be several, "a.py:3 + b.py:5".
  auto map = [&](std::string &location) {
    std::string mapped;
    for (size_t at = 0; at < location.size();) {
      const size_t plus = std::min(location.find(" + ", at), location.size());
      mapped +=
          (at == 0 ? "" : " + ") + (*this)(location.substr(at, plus - at));
      at = plus + 3;
    }
    location = std::move(mapped);
  };
  for (planner::DagNode &node : dag.nodes)
    map(node.location);
  for (planner::KernelSpec &kernel : dag.kernels) {
    map(kernel.location);
    if (auto *mlir = std::get_if<planner::MlirKernel>(&kernel.source))
      mlir->text = inText(mlir->text);
    if (auto *cuda = std::get_if<planner::CudaFile>(&kernel.source)) {
      cuda->file = (*this)(cuda->file);
      cuda->reference = inText(cuda->reference);
    }
  }
  map(dag.loop.location);
}

/// The hash of a regular file; what came from a pipe is gone.
Result<std::string> hashOf(const std::string &path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode))
    return std::string();
  MGPU_TRY_ASSIGN(std::vector<std::byte> bytes, readFile(path));
  return Sha256().add(std::span<const std::byte>(bytes)).hex();
}

Result<db::ProgramRecord> originOf(const LoadOptions &options) {
  db::ProgramRecord origin;
  origin.entry = options.entry;
  origin.source = options.file;
  origin.version = MGPU_VERSION;
  for (const auto &[key, value] : options.arguments)
    origin.options += fmt::format("arg {}={}\n", key, value);
  for (const auto &[key, value] : options.roles)
    origin.options += fmt::format("role {}={}\n", key, value);
  for (const auto &[pattern, role] : options.rolePatterns)
    origin.options += fmt::format("role {}={}\n", pattern, role);
  if (options.residentExcept)
    origin.options += fmt::format("resident-except {}\n",
                                  fmt::join(*options.residentExcept, ","));
  origin.options += fmt::format("roll-from {}\n", options.rollFrom);
  if (!options.fuse)
    origin.options += "no-fusion\n";
  if (options.exact)
    origin.options += "exact\n";
  MGPU_TRY_ASSIGN(origin.sourceHash, hashOf(options.file));
  return origin;
}

/// Only a level that lacks what a kernel needs may be left out, and not the
/// last one; but a kernel that is a file of CUDA C++ has no form for the host.
/// `choice` is what was tuned, or null.
Result<void> addHostKernels(const LoadedProgram &program,
                            const std::vector<std::string> &wanted,
                            const TunedChoice *choice,
                            std::vector<std::string> &notes,
                            std::vector<capture::KernelForms> &kernels) {
  const bool forGpusAlone =
      std::any_of(kernels.begin(), kernels.end(), [](const auto &kernel) {
        return kernel.cuda && !kernel.cuda->image.takesPart;
      });
  std::vector<std::string> levels = wanted;
  std::sort(levels.begin(), levels.end());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  Error last;
  size_t added = 0;
  for (const std::string &level : levels) {
    auto objects =
        choice ? compileConfig(program, choice->context, choice->config, level)
               : program.compiler().compileKernels(program.dag, level);
    if (!objects && (objects.error().kind == ErrorKind::Unsupported ||
                     objects.error().kind == ErrorKind::Absent)) {
      notes.push_back(fmt::format("no kernels for {}: {}",
                                  forGpusAlone ? "the host" : level,
                                  objects.error().message));
      if (forGpusAlone)
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
  if (added == 0 && !levels.empty())
    return fail(std::move(last));
  return {};
}

/// Each kernel in --alternatives more ways near the one that is taken.
Result<void> addAlternatives(const LoadedProgram &program,
                             uint32_t alternatives, const TunedChoice *choice,
                             std::vector<capture::KernelForms> &kernels) {
  if (alternatives == 0 || kernels.front().host.empty())
    return {};
  std::vector<kernels::KernelSpace> spaces;
  if (choice) {
    spaces = choice->context.spaces;
  } else {
    MGPU_TRY_ASSIGN(spaces, program.compiler().hostKernelSpaces(program.dag));
  }
  struct Way {
    uint32_t kernel;
    const std::string *level;
    kernels::KernelConfig config;
    Result<std::vector<std::byte>> object;
  };
  std::vector<Way> ways;
  for (uint32_t k = 0; k < kernels.size(); ++k) {
    const kernels::KernelConfig taken =
        choice ? choice->config.kernels[k] : spaces[k].defaults;
    kernels[k].hostSpace =
        kernels::narrowed(spaces[k], taken, alternatives + 1,
                          "the bundle has it built with one value");
    for (const kernels::KernelConfig &config : kernels[k].hostSpace->legal())
      if (config != taken)
        for (const auto &[level, object] : kernels[k].host)
          ways.push_back({k, &level, config, {}});
  }
  Progress progress("compiling the kernels' other configurations", ways.size());
  parallelFor(ways.size(), 0, [&](size_t w) {
    Way &way = ways[w];
    way.object = program.compiler().buildHostKernel(
        program.dag, {way.kernel}, spaces[way.kernel], way.config, *way.level);
    progress.step();
  });
  for (Way &way : ways) {
    MGPU_TRY_ASSIGN(auto object, std::move(way.object));
    kernels[way.kernel].alternatives[*way.level].emplace(way.config,
                                                         std::move(object));
  }
  return {};
}

/// Compiles the cubins that the program does not have already.
Result<void> compileCubins(const LoadedProgram &program,
                           const std::vector<std::string> &archs,
                           std::vector<capture::KernelForms> &kernels) {
  const LoadOptions &from = program.from;
  auto cache = openCubinCache(from.database);
  for (const std::string &arch : archs) {
    MGPU_TRY(checkPdl(program.variants.isAsked(Variant::Pdl), arch));
    std::vector<kernels::CudaText> texts;
    std::vector<size_t> made;
    for (size_t k = 0; k < kernels.size(); ++k)
      if (!kernels[k].cubins.contains(arch)) {
        made.push_back(k);
        texts.push_back(*kernels[k].cuda);
      }
    MGPU_TRY_ASSIGN(auto compiled,
                    kernels::compileTexts(texts, arch, cache.get(),
                                          compileLimits(from.compileSeconds),
                                          kernels::Programs::OneEach));
    for (size_t k = 0; k < compiled.size(); ++k) {
      MGPU_TRY_ASSIGN(const kernels::CompiledText one, std::move(compiled[k]));
      kernels[made[k]].cubins.insert_or_assign(arch, one.program->cubin);
    }
  }
  return {};
}

Result<void> addCubins(const LoadedProgram &program,
                       const std::vector<std::string> &archs,
                       std::vector<capture::KernelForms> &kernels) {
  bool hasAll = true;
  for (const std::string &arch : archs)
    for (size_t k = 0; k < kernels.size(); ++k) {
      MGPU_TRY_ASSIGN(auto given, givenCubin(program.dag.kernels[k],
                                             *kernels[k].cuda, arch));
      if (given)
        kernels[k].cubins.emplace(arch, std::move(*given));
      hasAll &= given.has_value();
    }
  return hasAll ? Result<void>() : compileCubins(program, archs, kernels);
}

/// Without --arch a kernel that CUDA C++ cannot express is not a hindrance.
Result<void> addCudaKernels(const LoadedProgram &program,
                            const std::vector<std::string> &archs,
                            const PathMap &paths,
                            std::vector<std::string> &notes,
                            std::vector<capture::KernelForms> &kernels) {
  auto texts = cudaTexts(program, nullptr);
  if (!texts && archs.empty() && texts.error().kind == ErrorKind::Unsupported) {
    notes.push_back("no CUDA C++ in the bundle: " + texts.error().message);
    return {};
  }
  if (!texts)
    return fail(std::move(texts.error()));
  for (size_t k = 0; k < texts->size(); ++k) {
    kernels[k].cuda = std::move((*texts)[k]);
    std::string &text = kernels[k].cuda->image.blob;
    text = paths.inText(text);
  }
  if (archs.empty() || kernels.empty())
    return {};
  return addCubins(program, archs, kernels);
}

} // namespace

Result<MadeBundle> makeBundle(LoadedProgram program,
                              const PrepareOptions &prepare,
                              const BundleOptions &options) {
  MadeBundle made;
  if (!program.expectations.empty())
    return fail(ErrorKind::Unsupported,
                fmt::format("{}: a bundle does not compare results with what "
                            "they must be; take the check.* call out, or use "
                            "'mgpu-tune run'",
                            program.expectations.front().place));
  if (!program.outputs.empty())
    return fail(ErrorKind::Unsupported,
                fmt::format("{}: a bundle prints and checks nothing on the "
                            "host; take the call out, or use 'mgpu-tune run'",
                            program.outputs.front().place));
  capture::BundleContents &contents = made.contents;
  MGPU_TRY_ASSIGN(contents.origin, originOf(program.from));
  contents.origin.options += program.deviceCall;
  MGPU_TRY_ASSIGN(auto choice, findTuned(program, prepare));
  if (choice && !choice->isTuned)
    choice.reset(); // what was profiled here is not what others have
  made.isTuned = choice.has_value();
  if (choice && prepare.planFile.empty()) {
    MGPU_TRY(transformChosen(program, *choice));
    MGPU_TRY_ASSIGN(contents.plan, tuner::planOf(program.dag, choice->config,
                                                 choice->context.machine));
    contents.threads = choice->config.threads;
  } else {
    MGPU_TRY_ASSIGN(auto planned, makePlan(program, {prepare}));
    contents.plan = std::move(planned.plan);
  }
  // The program is stored as the transforms left it.
  if (!contents.plan.transforms.empty())
    contents.origin.options += fmt::format(
        "transforms {}\n", fmt::join(contents.plan.transforms, ","));
  contents.plan.transforms.clear();
  contents.kernels.resize(program.dag.kernels.size());
  const TunedChoice *tuned = choice ? &*choice : nullptr;
  const PathMap paths(program.from.file, options.prefixMap);
  if (!contents.kernels.empty()) {
    MGPU_TRY(addCudaKernels(program, options.archs, paths, made.notes,
                            contents.kernels));
    MGPU_TRY(addHostKernels(program, options.levels, tuned, made.notes,
                            contents.kernels));
    MGPU_TRY(addAlternatives(program, options.alternatives, tuned,
                             contents.kernels));
  }
  if (!options.archs.empty()) {
    MGPU_TRY_ASSIGN(contents.own,
                    compileOwn(program.dag, options.archs,
                               openCubinCache(program.from.database).get()));
  }
  contents.origin.source = paths(contents.origin.source);
  paths.apply(program.dag);
  contents.program = std::move(program);
  return made;
}

} // namespace mgpu::pipeline

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/Program.h"

#include "device/host/CpuLevel.h"
#include "planner/dagfile/DagJson.h"
#include "planner/dagfile/TraceDag.h"
#include "planner/schedule/list/Schedulers.h"
#include "planner/schedule/transform/ChunkCounts.h"
#include "support/Array.h"
#include "support/FileIO.h"
#include "support/FileNames.h"
#include "support/Plural.h"
#include "tools/mgpu-tune/Compiler.h"
#include "tools/mgpu-tune/ProductForms.h"
#include "tools/mgpu-tune/Target.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

namespace mgpu::tune {

Result<const Binding *> findBinding(const Program &program,
                                    const std::string &key, const char *option,
                                    bool results) {
  for (const Binding &binding : program.bindings)
    if (binding.name == key && (results || !binding.isResult))
      return &binding;
  for (size_t k = 0; k < program.bindings.size(); ++k)
    if (!program.bindings[k].isResult && key == std::to_string(k))
      return &program.bindings[k];
  std::string known;
  for (const Binding &binding : program.bindings)
    if (results || !binding.isResult)
      known += (known.empty() ? "" : ", ") + binding.name;
  return fail(ErrorKind::Usage,
              fmt::format("{} {}: no such argument; there are: {}", option, key,
                          known.empty() ? "none" : known));
}

static std::string roleText(planner::ArgumentRole role) {
  if (role == planner::ArgumentRole::InOut)
    return "input, output";
  return std::string(toString(role));
}

static void addBindings(Program &program) {
  std::vector<bool> reads = planner::readsFirst(program.dag);
  auto add = [&](const planner::ProgramArgument &argument, bool isResult) {
    program.bindings.push_back(
        {argument.name, isResult, roleText(argument.role), argument.elementType,
         argument.shape, argument.buffer,
         !isResult && argument.buffer && reads[argument.buffer->value]});
  };
  for (const planner::ProgramArgument &argument : program.arguments)
    add(argument, false);
  for (const planner::ProgramArgument &result : program.results)
    add(result, true);
}

/// Every --arg names an argument, and no two name the same one.
static Result<void> checkArgumentKeys(const Program &program,
                                      const Options &options) {
  std::map<const Binding *, std::string> given;
  for (const auto &[key, value] : options.arguments) {
    MGPU_TRY_ASSIGN(const Binding *binding,
                    findBinding(program, key, "--arg", false));
    auto [earlier, isNew] = given.try_emplace(binding, key);
    if (!isNew)
      return fail(ErrorKind::Usage,
                  fmt::format("--arg {} and --arg {} are the same argument",
                              earlier->second, key));
  }
  return {};
}

Result<void> checkSeed(const Options &options) {
  if (options.given.count("--seed") && options.scheduler != "shuffled")
    return fail(ErrorKind::Usage, fmt::format("--seed is of --scheduler "
                                              "shuffled, and not of {}",
                                              options.scheduler));
  return {};
}

Result<void> checkOutputPath(const std::string &path) {
  struct stat status {};
  bool exists = ::stat(path.c_str(), &status) == 0;
  int code = 0;
  if (exists && S_ISDIR(status.st_mode)) {
    code = EISDIR;
  } else if (exists && !S_ISREG(status.st_mode)) { // written in place
    code = ::access(path.c_str(), W_OK) == 0 ? 0 : errno;
  } else {
    const std::string target = followLinks(path);
    size_t slash = target.rfind('/');
    std::string folder = slash == std::string::npos
                             ? "."
                             : target.substr(0, std::max<size_t>(slash, 1));
    code = ::access(folder.c_str(), W_OK | X_OK) == 0 ? 0 : errno;
  }
  if (code == 0)
    return {};
  return fail(ErrorKind::Usage,
              fmt::format("cannot write '{}': {}", path, std::strerror(code)));
}

/// A missing file is a fault of the command line; the readers below call what
/// they cannot read a fault of the program.
Result<void> checkReadable(const std::string &path) {
  struct stat status {};
  int code = 0;
  if (::stat(path.c_str(), &status) != 0 || ::access(path.c_str(), R_OK) != 0)
    code = errno;
  else if (S_ISDIR(status.st_mode))
    code = EISDIR;
  if (code == 0)
    return {};
  return fail(ErrorKind::Usage,
              fmt::format("cannot read '{}': {}", path, std::strerror(code)));
}

/// Whether the user's `text` is the scalar that `value` is.
static bool isSameScalar(const std::string &text, const std::string &value,
                         ElementType type) {
  std::byte given[8] = {}, made[8] = {};
  return text == value ||
         (storeText(text, type, given) && storeText(value, type, made) &&
          std::equal(given, given + sizeof given, made));
}

/// What decided the program cannot be decided again.
static Result<void> checkMadeFor(const Program &program,
                                 const Options &options) {
  const db::ProgramRecord &origin = program.bundle->origin();
  if (!options.roles.empty())
    return fail(ErrorKind::Usage,
                fmt::format("--role {}: the roles of a bundle are fixed: make "
                            "it again from {}",
                            options.roles.begin()->first, origin.source));
  if (!options.fuse)
    return fail(ErrorKind::Usage,
                fmt::format("--no-fusion: the kernels of a bundle are made: "
                            "make it again from {}",
                            origin.source));
  for (const char *option : {"--node-limit", "--roll-from"})
    if (options.given.count(option))
      return fail(ErrorKind::Usage,
                  fmt::format("{}: the nodes of a bundle are made: make it "
                              "again from {}",
                              option, origin.source));
  if (options.entry != "main" && options.entry != origin.entry)
    return fail(ErrorKind::Usage,
                fmt::format("--entry {}: the bundle is of @{}: make one of @{} "
                            "from {}",
                            options.entry, origin.entry, options.entry,
                            origin.source));
  for (size_t k = 0; k < program.arguments.size(); ++k) {
    const planner::ProgramArgument &argument = program.arguments[k];
    if (argument.buffer)
      continue;
    for (const std::string &key : {argument.name, std::to_string(k)})
      if (auto given = options.arguments.find(key);
          given != options.arguments.end() &&
          !isSameScalar(given->second, argument.value, argument.elementType))
        return fail(
            ErrorKind::Usage,
            fmt::format("--arg {0}={1}: the bundle was made for {2}={3},"
                        " which decided its shape: leave it out, or "
                        "make a bundle for {2}={1} from {4}",
                        key, given->second, argument.name, argument.value,
                        origin.source));
  }
  return {};
}

static Result<Program> openBundle(const Options &options) {
  MGPU_TRY_ASSIGN(capture::Bundle bundle, capture::Bundle::open(options.file));
  Program program;
  static_cast<planner::Program &>(program) = bundle.program();
  program.bundle = std::make_shared<capture::Bundle>(std::move(bundle));
  MGPU_TRY(checkMadeFor(program, options));
  return program;
}

Result<HostKernels> hostKernels(const Program &program,
                                const std::string &cpu) {
  std::vector<std::string_view> levels = device::cpuLevels();
  if (!cpu.empty()) {
    if (std::find(levels.begin(), levels.end(), cpu) == levels.end())
      return fail(ErrorKind::Absent,
                  fmt::format("--cpu {}: this processor does not run it", cpu));
    levels = {cpu};
  }
  if (program.bundle) {
    MGPU_TRY_ASSIGN(auto kernels, program.bundle->hostKernels(levels));
    return HostKernels{std::move(kernels.level), std::move(kernels.objects)};
  }
  HostKernels kernels{cpu.empty() ? "native" : cpu, {}};
  MGPU_TRY_ASSIGN(kernels.objects, compileKernels(program.dag, kernels.cpu));
  return kernels;
}

Result<std::vector<Result<kernels::CudaText>>>
eachCudaText(const Program &program, device::BlobCache *cache) {
  if (program.bundle) {
    MGPU_TRY_ASSIGN(auto stored, program.bundle->cudaTexts());
    return std::vector<Result<kernels::CudaText>>(stored.begin(), stored.end());
  }
  auto texts = emitCudaKernels(program.dag, program.tensorCores, cache);
  for (Result<kernels::CudaText> &text : texts) {
    if (!text)
      continue;
    text->image.awaits = program.pdl && text->image.takesPart;
    for (kernels::CudaText &candidate : text->candidates)
      candidate.image.awaits = text->image.awaits;
  }
  return texts;
}

Result<std::vector<kernels::CudaText>> cudaTexts(const Program &program,
                                                 device::BlobCache *cache) {
  MGPU_TRY_ASSIGN(auto each, eachCudaText(program, cache));
  return allOf(std::move(each));
}

Result<planner::Plan> planOf(Program &program, const Options &options) {
  return program.bundle && !options.choosesPlan ? program.bundle->plan()
                                                : makePlan(program, options);
}

/// A recorded trace or an mgpu-dag/2 file, by what it says of itself.
static Result<Program> openJson(const std::string &path) {
  static constexpr uint64_t limit = uint64_t(4) << 30;
  Program program;
  MGPU_TRY_ASSIGN(std::string text, readText(path, limit));
  if (!planner::isTrace(text)) {
    MGPU_TRY_ASSIGN(program.dag, planner::parseDagJson(text, path));
    return program;
  }
  MGPU_TRY_ASSIGN(auto events, planner::readTraceEvents(text, path));
  MGPU_TRY_ASSIGN(auto trace, planner::traceDag(std::move(events), path));
  fmt::print(
      stderr, "mgpu-tune: {}: {} of {} on {}, {:.3f} us\n", path,
      counted(trace.dag.nodes.size(), "kernel or copy", "kernels and copies"),
      counted(trace.dag.numDevices, "device"), counted(trace.streams, "stream"),
      trace.recordedUs);
  for (const std::string &note : trace.notes)
    fmt::print(stderr, "mgpu-tune: note: {}\n", note);
  program.dag = std::move(trace.dag);
  program.recordedUs = trace.recordedUs;
  return program;
}

Result<Program> loadProgram(const Options &options, bool racesAreErrors,
                            std::vector<Message> *messages, bool kernelTexts) {
  auto endsWith = [&](std::string_view suffix) {
    return options.file.size() >= suffix.size() &&
           options.file.compare(options.file.size() - suffix.size(),
                                suffix.size(), suffix) == 0;
  };
  if (options.file != "-")
    MGPU_TRY(checkReadable(options.file));
  Program program;
  if (options.file != "-" && db::isDatabaseFile(options.file)) {
    if (!options.tensorCores.empty())
      return fail(ErrorKind::Usage,
                  fmt::format("--tensor-cores: the kernels of the bundle '{}' "
                              "are chosen; give the program it was made of",
                              options.file));
    if (options.pdl)
      return fail(ErrorKind::Usage,
                  fmt::format("--pdl: the kernels of the bundle '{}' are "
                              "built; give it to `bundle`, with the program",
                              options.file));
    MGPU_TRY_ASSIGN(program, openBundle(options));
  } else if (endsWith(".mgpu")) {
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' is no bundle: `mgpu-tune bundle` makes them",
                            options.file));
  } else if (endsWith(".json") || endsWith(".json.gz")) {
    for (const char *option : {"--entry", "--role", "--node-limit",
                               "--roll-from", "--no-fusion", "--tensor-cores"})
      if (options.given.count(option))
        return fail(ErrorKind::Usage,
                    fmt::format("{} is of .mlir programs: '{}' holds nodes",
                                option, options.file));
    MGPU_TRY_ASSIGN(program, openJson(options.file));
  } else {
    Options chosen = options;
    if (std::string forms = passedForms(options); !forms.empty())
      chosen.tensorCores = forms;
    MGPU_TRY_ASSIGN(
        program, importProgram(chosen, racesAreErrors, messages, kernelTexts));
    program.tensorCores = chosen.tensorCores;
    program.pdl = options.pdl;
    auto isProduct = [](const planner::KernelSpec &kernel) {
      return kernel.source.find("mgpu.matmul") != std::string::npos &&
             kernel.source.find("f16>") != std::string::npos;
    };
    if (isByRecord(program.tensorCores) &&
        std::any_of(program.dag.kernels.begin(), program.dag.kernels.end(),
                    isProduct))
      fmt::print(stderr,
                 "mgpu-tune: matrix products of f16 and bf16 by mgpu's own "
                 "form ({}), which the database says has passed on this card\n",
                 program.tensorCores.substr(byRecord.size()));
  }
  program.compileSeconds = options.compileSeconds;
  addBindings(program);
  MGPU_TRY(checkArgumentKeys(program, options));
  return program;
}

Result<std::vector<std::string>>
transformProgram(Program &program,
                 const std::vector<planner::Transform> &transforms) {
  std::vector<std::string> names;
  for (const planner::Transform &transform : transforms) {
    MGPU_TRY_ASSIGN(uint32_t changes,
                    planner::applyTransform(program.dag, transform));
    if (changes > 0)
      names.emplace_back(toString(transform));
  }
  return names;
}

/// The plan of options.scheduler for the host, verified.
static Result<planner::Plan> schedule(const planner::Dag &dag,
                                      const Options &options,
                                      planner::Freedoms freedoms) {
  planner::RooflineEstimator latency(planner::hostRates(), "host roofline");
  planner::ScheduleOptions schedule;
  schedule.streamsPerDevice = streamsOf(options.target, options.streams);
  schedule.freedoms = freedoms;
  planner::Plan plan;
  if (options.scheduler == "serial") {
    MGPU_TRY_ASSIGN(plan, planner::scheduleSerial(dag, latency, schedule));
  } else if (options.scheduler == "shuffled") {
    MGPU_TRY_ASSIGN(
        plan, planner::scheduleShuffled(dag, latency, options.seed, schedule));
  } else {
    MGPU_TRY_ASSIGN(plan, planner::scheduleList(dag, latency, schedule));
  }
  if (auto ok = planner::verify(plan, dag, schedule.limits); !ok)
    return fail(ErrorKind::Internal,
                fmt::format("scheduler '{}' made an unsafe "
                            "plan: {}",
                            options.scheduler, ok.error().message));
  return plan;
}

/// Numbers for the chunks among `transforms` that have none: those of the least
/// makespan, after the transforms before them.
static Result<void> chooseChunks(const planner::Dag &dag,
                                 const Options &options,
                                 planner::TransformChoice &choice) {
  planner::Dag before = dag;
  for (planner::Transform &transform : choice.transforms) {
    if (transform.kind == planner::TransformKind::Chunk &&
        transform.counts.empty()) {
      MGPU_TRY_ASSIGN(
          planner::ChunkCounts found,
          planner::findChunkCounts(
              before, {}, [&](const planner::Dag &of) -> Result<double> {
                MGPU_TRY_ASSIGN(planner::Plan plan,
                                schedule(of, options, choice.freedoms));
                return plan.makespanUs;
              }));
      transform.counts = std::move(found.counts);
    }
    MGPU_TRY(planner::applyTransform(before, transform));
  }
  return {};
}

Result<planner::Plan> makePlan(Program &program, const Options &options) {
  std::vector<std::string> names;
  planner::Freedoms freedoms;
  // The scheduler says how free the plan is where the list does not.
  if (options.transforms != "auto" && options.transforms != "none") {
    MGPU_TRY(planner::parseTransforms(options.transforms)); // as it was given
    // "auto" changes no program here.
    std::string list = options.transforms;
    if (list.starts_with("auto,"))
      list.replace(0, 4, "none");
    else if (list.starts_with('-'))
      list.insert(0, "none,");
    MGPU_TRY_ASSIGN(planner::TransformChoice choice,
                    planner::parseTransforms(list));
    if (choice.namesFreedoms && options.scheduler != "list")
      return fail(ErrorKind::Usage,
                  fmt::format("--transforms {}: order, early and nofork are of "
                              "--scheduler list",
                              options.transforms));
    MGPU_TRY(chooseChunks(program.dag, options, choice));
    MGPU_TRY_ASSIGN(names, transformProgram(program, choice.transforms));
    freedoms = choice.freedoms;
    for (const planner::Transform &transform : choice.transforms)
      if (planner::freedomOf(transform.kind))
        names.emplace_back(toString(transform));
  }
  MGPU_TRY_ASSIGN(planner::Plan plan, schedule(program.dag, options, freedoms));
  plan.transforms = std::move(names);
  return plan;
}

Result<planner::Plan> readPlan(const std::string &path, Program &program) {
  MGPU_TRY_ASSIGN(std::vector<std::byte> bytes, readFile(path));
  std::string_view text(reinterpret_cast<const char *>(bytes.data()),
                        bytes.size());
  auto wrong = [&](const Error &error) {
    return fail(error.kind, fmt::format("{}: {}", path, error.message));
  };
  auto names = planner::parsePlanTransforms(text);
  if (!names)
    return wrong(names.error());
  std::vector<planner::Transform> transforms;
  for (const std::string &name : *names) {
    auto transform = planner::parseTransform(name);
    if (!transform)
      return fail(ErrorKind::Invalid,
                  fmt::format("{}: it was made after transform \"{}\", which "
                              "this version does not have",
                              path, name));
    transforms.push_back(std::move(*transform));
  }
  if (auto made = transformProgram(program, transforms); !made)
    return wrong(made.error());
  auto plan = planner::parsePlan(text, program.dag);
  if (!plan)
    return wrong(plan.error());
  if (auto ok = planner::verify(*plan, program.dag); !ok)
    return fail(ErrorKind::Invalid,
                fmt::format("{}: unsafe plan: {}", path, ok.error().message));
  return plan;
}

Result<planner::Plan> planFor(Program &program, const Options &options) {
  if (options.planFile.empty() && options.needsPlan && !program.bundle)
    return fail(ErrorKind::Usage,
                fmt::format("'{}' has no plan of its own: give --plan FILE, as "
                            "`mgpu-tune plan -o FILE` writes it, or a bundle",
                            options.file));
  return options.planFile.empty() ? planOf(program, options)
                                  : readPlan(options.planFile, program);
}

} // namespace mgpu::tune

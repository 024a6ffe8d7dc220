// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/Program.h"

#include "planner/dag/DagJson.h"
#include "planner/schedule/Schedulers.h"
#include "tools/mgpu-tune/Compiler.h"

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

Result<void> checkOutputPath(const std::string &path) {
  struct stat status {};
  bool exists = ::stat(path.c_str(), &status) == 0;
  int code = 0;
  if (exists && S_ISDIR(status.st_mode)) {
    code = EISDIR;
  } else if (exists && !S_ISREG(status.st_mode)) { // written in place
    code = ::access(path.c_str(), W_OK) == 0 ? 0 : errno;
  } else {
    size_t slash = path.rfind('/');
    std::string folder = slash == std::string::npos
                             ? "."
                             : path.substr(0, std::max<size_t>(slash, 1));
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

Result<Program> loadProgram(const Options &options, bool racesAreErrors,
                            std::vector<Message> *messages) {
  auto endsWith = [&](std::string_view suffix) {
    return options.file.size() >= suffix.size() &&
           options.file.compare(options.file.size() - suffix.size(),
                                suffix.size(), suffix) == 0;
  };
  if (options.file != "-")
    MGPU_TRY(checkReadable(options.file));
  Program program;
  if (endsWith(".json") || endsWith(".json.gz")) {
    MGPU_TRY_ASSIGN(program.dag, planner::readDagJson(options.file));
  } else {
    MGPU_TRY_ASSIGN(program, importProgram(options, racesAreErrors, messages));
  }
  MGPU_TRY(checkArgumentKeys(program, options));
  return program;
}

Result<std::vector<planner::TransformKind>>
parseTransforms(const std::string &text) {
  std::vector<planner::TransformKind> kinds;
  if (text == "none")
    return kinds;
  if (text == "auto") {
    kinds.assign(std::begin(planner::allTransforms),
                 std::end(planner::allTransforms));
    return kinds;
  }
  for (size_t at = 0; at <= text.size();) {
    size_t comma = std::min(text.find(',', at), text.size());
    std::string name = text.substr(at, comma - at);
    auto kind = planner::parseTransform(name);
    if (!kind)
      return fail(ErrorKind::Usage,
                  fmt::format("--transforms {}: there is no \"{}\"; give auto, "
                              "none or a list of copies, scatter, bucket, "
                              "split",
                              text, name));
    kinds.push_back(*kind);
    at = comma + 1;
  }
  return kinds;
}

Result<std::vector<std::string>>
transformProgram(Program &program,
                 const std::vector<planner::TransformKind> &kinds) {
  std::vector<std::string> names;
  for (planner::TransformKind kind : kinds) {
    MGPU_TRY_ASSIGN(uint32_t changes,
                    planner::applyTransform(program.dag, kind));
    if (changes > 0)
      names.emplace_back(toString(kind));
  }
  return names;
}

Result<planner::Plan> makePlan(Program &program, const Options &options) {
  std::vector<std::string> transforms;
  if (options.transforms != "auto") {
    MGPU_TRY_ASSIGN(auto kinds, parseTransforms(options.transforms));
    MGPU_TRY_ASSIGN(transforms, transformProgram(program, kinds));
  }
  const planner::Dag &dag = program.dag;
  planner::RooflineEstimator latency(planner::hostRates(), "host roofline");
  planner::ScheduleOptions schedule;
  schedule.streamsPerDevice = options.streams;
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
  plan.transforms = std::move(transforms);
  return plan;
}

} // namespace mgpu::tune

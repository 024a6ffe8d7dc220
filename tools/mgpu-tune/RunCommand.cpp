// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune run` and `mgpu-tune replay`: the three phases, timed apart.
#include "capture/replay/Replayer.h"
#include "planner/plan/Verify.h"
#include "support/ArgumentValue.h"
#include "support/FileIO.h"
#include "support/Npy.h"
#include "tools/mgpu-tune/Program.h"
#include "tools/mgpu-tune/Target.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>

namespace mgpu::tune {

using nlohmann::json;

namespace {

using Clock = std::chrono::steady_clock;

double microsecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start)
      .count();
}

Result<void> bindArguments(const Program &program, const Options &options,
                           capture::Replayer &replayer) {
  std::vector<const Binding *> given;
  for (const auto &[key, spec] : options.arguments) {
    MGPU_TRY_ASSIGN(const Binding *binding,
                    findBinding(program, key, "--arg", false));
    if (!binding->buffer)
      continue; // a scalar, used when the program was specialised
    auto array = loadArgument(spec, binding->elementType, binding->shape);
    if (!array)
      return fail(array.error().kind,
                  fmt::format("--arg {}: {}", key, array.error().message));
    std::span<std::byte> bytes = replayer.hostBuffer(*binding->buffer);
    if (bytes.size() != array->bytes.size())
      return fail(ErrorKind::Internal,
                  fmt::format("--arg {}: {} bytes for a buffer of {}", key,
                              array->bytes.size(), bytes.size()));
    std::copy(array->bytes.begin(), array->bytes.end(), bytes.begin());
    given.push_back(binding);
  }
  for (const Binding &binding : program.bindings)
    if (binding.needsValue &&
        std::find(given.begin(), given.end(), &binding) == given.end())
      return fail(ErrorKind::Usage,
                  fmt::format("argument '{0}' is read but has no value; give "
                              "--arg {0}=VALUE",
                              binding.name));
  return {};
}

Result<void> checkOutputs(const Program &program, const Options &options) {
  if (!options.traceFile.empty())
    MGPU_TRY(checkOutputPath(options.traceFile));
  std::set<std::string> files;
  for (const auto &[key, file] : options.outputs) {
    MGPU_TRY_ASSIGN(const Binding *binding,
                    findBinding(program, key, "--out", true));
    if (!binding->buffer)
      return fail(ErrorKind::Usage,
                  fmt::format("--out {}: it is a scalar, not an output", key));
    if (file.size() < 5 || file.compare(file.size() - 4, 4, ".npy") != 0)
      return fail(
          ErrorKind::Usage,
          fmt::format("--out {}={}: outputs are written as .npy", key, file));
    if (!files.insert(file).second)
      return fail(ErrorKind::Usage,
                  fmt::format("--out {}={}: another --out writes this file",
                              key, file));
    MGPU_TRY(checkOutputPath(file));
  }
  return {};
}

Result<void> writeOutputs(const Program &program, const Options &options,
                          capture::Replayer &replayer) {
  for (const auto &[key, file] : options.outputs) {
    MGPU_TRY_ASSIGN(const Binding *binding,
                    findBinding(program, key, "--out", true));
    std::span<std::byte> bytes = replayer.hostBuffer(*binding->buffer);
    MGPU_TRY(writeNpy(file, Array{binding->elementType,
                                  binding->shape,
                                  {bytes.begin(), bytes.end()}}));
  }
  return {};
}

/// Value at `share` (0..1) of sorted samples.
double quantile(const std::vector<double> &sorted, double share) {
  return sorted[size_t(share * double(sorted.size() - 1) + 0.5)];
}

std::string traceOf(const planner::Dag &dag,
                    std::span<const capture::NodeSpan> spans) {
  json events = json::array();
  for (const capture::NodeSpan &span : spans) {
    const planner::DagNode &node = dag.node(span.node);
    std::string devices;
    for (DeviceId device : node.devices)
      devices += (devices.empty() ? "" : ",") + std::to_string(device.value);
    events.push_back(
        {{"name", node.name},
         {"ph", "X"},
         {"pid", 0},
         {"tid", span.lane},
         {"ts", span.startUs},
         {"dur", span.endUs - span.startUs},
         {"args", {{"devices", devices}, {"source", node.location}}}});
  }
  return json{{"traceEvents", std::move(events)}}.dump() + "\n";
}

Result<planner::Plan> planFor(Program &program, const Options &options) {
  if (options.planFile.empty())
    return makePlan(program, options);
  MGPU_TRY_ASSIGN(std::vector<std::byte> bytes, readFile(options.planFile));
  std::string_view text(reinterpret_cast<const char *>(bytes.data()),
                        bytes.size());
  auto wrong = [&](const Error &error) {
    return fail(error.kind,
                fmt::format("{}: {}", options.planFile, error.message));
  };
  auto names = planner::parsePlanTransforms(text);
  if (!names)
    return wrong(names.error());
  std::vector<planner::TransformKind> kinds;
  for (const std::string &name : *names) {
    auto kind = planner::parseTransform(name);
    if (!kind)
      return fail(ErrorKind::Invalid,
                  fmt::format("{}: it was made after transform \"{}\", which "
                              "this version does not have",
                              options.planFile, name));
    kinds.push_back(*kind);
  }
  MGPU_TRY(transformProgram(program, kinds));
  auto plan = planner::parsePlan(text, program.dag);
  if (!plan)
    return wrong(plan.error());
  if (auto ok = planner::verify(*plan, program.dag); !ok)
    return fail(ErrorKind::Invalid,
                fmt::format("{}: unsafe plan: {}", options.planFile,
                            ok.error().message));
  return plan;
}

} // namespace

Result<int> runRun(const Options &options) {
  Clock::time_point start = Clock::now();
  MGPU_TRY_ASSIGN(Program program, loadProgram(options, false));
  MGPU_TRY(checkOutputs(program, options));
  MGPU_TRY_ASSIGN(auto driver,
                  openTarget(options.target, program.dag.numDevices));
  double importUs = microsecondsSince(start);
  start = Clock::now();
  MGPU_TRY_ASSIGN(planner::Plan plan, planFor(program, options));
  double planUs = microsecondsSince(start);
  start = Clock::now();
  MGPU_TRY_ASSIGN(auto objects, compileKernels(program.dag));
  double compileUs = microsecondsSince(start);
  MGPU_TRY_ASSIGN(
      capture::Replayer replayer,
      capture::Replayer::create(program.dag, plan, objects, *driver));
  MGPU_TRY(bindArguments(program, options, replayer));

  start = Clock::now();
  MGPU_TRY(replayer.load());
  double loadUs = microsecondsSince(start);
  // Replays that write their own inputs are steps of a computation; the count
  // is the user's, so none is spent on warming up.
  std::vector<double> samples;
  samples.reserve(options.repeat);
  for (uint64_t r = 0; r < options.repeat; ++r) {
    start = Clock::now();
    MGPU_TRY(replayer.replay());
    samples.push_back(microsecondsSince(start));
  }
  start = Clock::now();
  MGPU_TRY(replayer.fetch());
  double fetchUs = microsecondsSince(start);
  MGPU_TRY(writeOutputs(program, options, replayer));
  if (!options.traceFile.empty()) {
    MGPU_TRY_ASSIGN(auto spans, replayer.replayTimed());
    MGPU_TRY(writeFileAtomic(options.traceFile, traceOf(program.dag, spans)));
  }

  std::sort(samples.begin(), samples.end());
  double median = quantile(samples, 0.5);
  if (options.json) {
    json out{{"file", options.file},
             {"target", driver->description()},
             {"scheduler", plan.scheduler},
             {"nodes", program.dag.nodes.size()},
             {"import_us", importUs},
             {"plan_us", planUs},
             {"compile_us", compileUs},
             {"load_us", loadUs},
             {"fetch_us", fetchUs},
             {"replay_us",
              {{"repeat", options.repeat},
               {"median", median},
               {"min", samples.front()},
               {"p25", quantile(samples, 0.25)},
               {"p75", quantile(samples, 0.75)},
               {"p95", quantile(samples, 0.95)}}}};
    fmt::print("{}\n", out.dump(2));
    return 0;
  }
  fmt::print("prepare {:.3f} ms (import {:.3f}, plan {:.3f}, compile {:.3f})\n",
             (importUs + planUs + compileUs) / 1e3, importUs / 1e3,
             planUs / 1e3, compileUs / 1e3);
  fmt::print("load    {:.3f} ms\n", loadUs / 1e3);
  if (options.repeat == 1)
    fmt::print("replay  {:.3f} ms\n", median / 1e3);
  else
    fmt::print("replay  {:.3f} ms median of {} (min {:.3f}, p25 {:.3f}, p75 "
               "{:.3f}, p95 {:.3f})\n",
               median / 1e3, options.repeat, samples.front() / 1e3,
               quantile(samples, 0.25) / 1e3, quantile(samples, 0.75) / 1e3,
               quantile(samples, 0.95) / 1e3);
  fmt::print("fetch   {:.3f} ms\n", fetchUs / 1e3);
  return 0;
}

} // namespace mgpu::tune

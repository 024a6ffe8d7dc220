// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune check`.
#include "pipeline/program/Faults.h"
#include "pipeline/program/Load.h"
#include "pipeline/program/Roles.h"
#include "pipeline/run/Check.h"
#include "pipeline/run/Probe.h"
#include "support/Units.h"
#include "tools/mgpu-tune/JsonOutput.h"
#include "tools/mgpu-tune/Options.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>

namespace mgpu::tools {

using nlohmann::json;

static std::string roleText(planner::ArgumentRole role) {
  if (role == planner::ArgumentRole::InOut)
    return "input, output";
  return std::string(toString(role));
}

static void printArgument(const char *what,
                          const planner::ProgramArgument &argument) {
  std::string shape;
  for (int64_t size : argument.shape)
    shape += fmt::format("{}x", size);
  fmt::print("  {} {}: {}{} ({})\n", what, argument.name, shape,
             toString(argument.elementType), roleText(argument.role));
}

static json
argumentsJson(const std::vector<planner::ProgramArgument> &arguments) {
  json out = json::array();
  for (const planner::ProgramArgument &argument : arguments)
    out.push_back({{"name", argument.name},
                   {"type", toString(argument.elementType)},
                   {"shape", argument.shape},
                   {"role", toString(argument.role)}});
  return out;
}

/// By node, on the target.
static std::vector<double> durationsOf(const LoadedProgram &program) {
  std::vector<double> durations;
  for (uint32_t n = 0; n < program.dag.nodes.size(); ++n)
    durations.push_back(
        program.from.times->durationUs(program.dag, planner::NodeId{n}));
  return durations;
}

/// The result as JSON, of a program that is sound or not.
static json toJson(const Result<LoadedProgram> &program,
                   const std::vector<Message> &messages,
                   const LoadOptions &load) {
  json out{{"file", load.file},
           {"ok", program.has_value()},
           {"messages", json::array()}};
  for (const Message &message : messages)
    out["messages"].push_back({{"severity", message.severity},
                               {"location", message.location},
                               {"text", message.text}});
  if (!program) {
    out["error"] = errorObject(program.error());
    return out;
  }
  const planner::Dag &dag = program->dag;
  out["devices"] = dag.numDevices;
  out["nodes"] = dag.nodes.size();
  out["dependencies"] = dag.edges.size();
  out["kernels"] = dag.kernels.size();
  out["buffers"] = dag.buffers.size();
  out["loop_trips"] = dag.loop.trips;
  out["arguments"] = argumentsJson(program->arguments);
  out["results"] = argumentsJson(program->results);
  addUploads(out, *program, durationsOf(*program));
  if (!program->changed.empty())
    out["other_bits"] = program->changed;
  if (load.reportSharding)
    out["sharding"] = program->sharding;
  return out;
}

Result<int> runCheck(const CheckOptions &options) {
  if (options.planFile.empty() && !options.certificateFile.empty())
    return fail(ErrorKind::Usage,
                "--certificate is of a plan: give --plan FILE as well");
  if (options.planFile.empty() && options.load.oneDevice)
    return fail(ErrorKind::Usage,
                "--one-device is of a plan: give --plan FILE, or check the "
                "program of all devices");
  std::vector<Message> messages;
  LoadOptions load = options.load;
  load.racesAreErrors = true;
  load.kernelTexts = true;
  Result<LoadedProgram> program = loadProgram(load, &messages);
  if (program && program->bundle)
    if (auto sound = program->bundle->verify(); !sound)
      program = fail(std::move(sound.error()));
  if (program)
    if (auto sound = verifyKernels(*program, messages); !sound)
      program = fail(std::move(sound.error()));
  if (program && options.probe) {
    nameFaults(*program);
    if (auto kept = probeAccesses(*program); !kept)
      program = fail(std::move(kept.error()));
  }
  std::string aboutPlan;
  if (program && !options.planFile.empty()) {
    if (auto words =
            checkPlan(*program, options.planFile, options.certificateFile))
      aboutPlan = *words;
    else
      program = fail(std::move(words.error()));
  }
  if (options.json) {
    json out = toJson(program, messages, load);
    if (!aboutPlan.empty())
      out["plan"] = aboutPlan;
    tools::printJson(out);
  }
  if (!program)
    return fail(program.error());
  if (options.json)
    return 0;
  const planner::Dag &dag = program->dag;
  fmt::print("{}: ok: {}, {}, {}, {}, {}\n", load.file,
             counted(dag.numDevices, "device"),
             counted(dag.nodes.size(), "node"),
             counted(dag.edges.size(), "dependency", "dependencies"),
             counted(dag.kernels.size(), "kernel"),
             counted(dag.buffers.size(), "buffer"));
  if (dag.loop.trips > 1)
    fmt::print("  loop {}: rolled, {} trips\n", dag.loop.location,
               dag.loop.trips);
  for (const planner::ProgramArgument &argument : program->arguments)
    printArgument("argument", argument);
  for (const planner::ProgramArgument &result : program->results)
    printArgument("result", result);
  for (const std::string &line : program->changed)
    fmt::print("  other bits than with --exact: {}\n", line);
  for (const std::string &line : program->sharding)
    fmt::print("  {}\n", line);
  fmt::print("{}", uploadsText(*program, durationsOf(*program)));
  if (!aboutPlan.empty())
    fmt::print("{}\n", aboutPlan);
  return 0;
}

} // namespace mgpu::tools

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune check`.
#include "pipeline/Faults.h"
#include "pipeline/Load.h"
#include "pipeline/Probe.h"
#include "support/Plural.h"
#include "tools/mgpu-tune/Options.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>

namespace mgpu::pipeline {

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

Result<int> runCheck(const CheckOptions &options) {
  std::vector<Message> messages;
  LoadOptions load = options.load;
  load.racesAreErrors = true;
  load.kernelTexts = options.probe;
  Result<LoadedProgram> program = loadProgram(load, &messages);
  if (program && program->bundle)
    if (auto sound = program->bundle->verify(); !sound)
      program = fail(std::move(sound.error()));
  if (program && options.probe) {
    nameFaults(*program);
    if (auto kept = probeAccesses(*program); !kept)
      program = fail(std::move(kept.error()));
  }
  if (options.json) {
    json out{{"file", load.file}, {"ok", program.has_value()}};
    out["messages"] = json::array();
    for (const Message &message : messages)
      out["messages"].push_back({{"severity", message.severity},
                                 {"location", message.location},
                                 {"text", message.text}});
    if (program) {
      out["nodes"] = program->dag.nodes.size();
      out["loop_trips"] = program->dag.loop.trips;
      if (load.reportSharding)
        out["sharding"] = program->sharding;
    } else
      out["error"] = program.error().message;
    fmt::print("{}\n", out.dump(2));
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
  for (const std::string &line : program->sharding)
    fmt::print("  {}\n", line);
  return 0;
}

} // namespace mgpu::pipeline

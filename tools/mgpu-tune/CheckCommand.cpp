// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune check`.
#include "support/Plural.h"
#include "tools/mgpu-tune/Program.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>

namespace mgpu::tune {

using nlohmann::json;

Result<int> runCheck(const Options &options) {
  std::vector<Message> messages;
  Result<Program> program =
      loadProgram(options, /*racesAreErrors=*/true, &messages,
                  /*kernelTexts=*/false);
  if (program && program->bundle)
    if (auto sound = program->bundle->verify(); !sound)
      program = fail(std::move(sound.error()));
  if (options.json) {
    json out{{"file", options.file}, {"ok", program.has_value()}};
    out["messages"] = json::array();
    for (const Message &message : messages)
      out["messages"].push_back({{"severity", message.severity},
                                 {"location", message.location},
                                 {"text", message.text}});
    if (program) {
      out["nodes"] = program->dag.nodes.size();
      out["loop_trips"] = program->dag.loop.trips;
    } else
      out["error"] = program.error().message;
    fmt::print("{}\n", out.dump(2));
  }
  if (!program)
    return fail(program.error());
  if (options.json)
    return 0;
  const planner::Dag &dag = program->dag;
  fmt::print("{}: ok: {}, {}, {}, {}, {}\n", options.file,
             counted(dag.numDevices, "device"),
             counted(dag.nodes.size(), "node"),
             counted(dag.edges.size(), "dependency", "dependencies"),
             counted(dag.kernels.size(), "kernel"),
             counted(dag.buffers.size(), "buffer"));
  if (dag.loop.trips > 1)
    fmt::print("  loop {}: rolled, {} trips\n", dag.loop.location,
               dag.loop.trips);
  for (const Binding &binding : program->bindings) {
    std::string shape;
    for (int64_t size : binding.shape)
      shape += fmt::format("{}x", size);
    fmt::print("  {} {}: {}{} ({})\n", binding.isResult ? "result" : "argument",
               binding.name, shape, toString(binding.elementType),
               binding.role);
  }
  return 0;
}

} // namespace mgpu::tune

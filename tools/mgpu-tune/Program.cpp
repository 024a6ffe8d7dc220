// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/Program.h"

#include "planner/dag/DagJson.h"
#include "planner/schedule/Schedulers.h"
#include "tools/mgpu-tune/Compiler.h"

#include <fmt/format.h>

namespace mgpu::tune {

Result<Program> loadProgram(const Options &options, bool racesAreErrors,
                            std::vector<Message> *messages) {
  auto endsWith = [&](std::string_view suffix) {
    return options.file.size() >= suffix.size() &&
           options.file.compare(options.file.size() - suffix.size(),
                                suffix.size(), suffix) == 0;
  };
  if (endsWith(".json") || endsWith(".json.gz")) {
    Program program;
    MGPU_TRY_ASSIGN(program.dag, planner::readDagJson(options.file));
    return program;
  }
  return importProgram(options, racesAreErrors, messages);
}

Result<planner::Plan> makePlan(const planner::Dag &dag,
                               const Options &options) {
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
  return plan;
}

} // namespace mgpu::tune

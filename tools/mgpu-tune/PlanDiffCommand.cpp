// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune compare A.plan B.plan`.
#include "planner/plan/PlanDiff.h"
#include "support/FileIO.h"
#include "support/FileNames.h"
#include "tools/mgpu-tune/JsonOutput.h"
#include "tools/mgpu-tune/Options.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mgpu::tools {

using nlohmann::json;

static Result<planner::PlanAlone> readAlone(const std::string &path) {
  static constexpr uint64_t mostText = uint64_t(1) << 30;
  MGPU_TRY(checkReadable(path));
  MGPU_TRY_ASSIGN(std::string text, readText(path, mostText));
  auto plan = planner::parsePlanAlone(text);
  if (!plan)
    return failIn(fmt::format("{}: ", path), plan.error());
  return plan;
}

Result<int> runPlanDiff(const CompareOptions &options) {
  if (options.a == "default" || options.a == "serial" || options.a == "tuned" ||
      options.a.ends_with(".db"))
    return fail(ErrorKind::Usage,
                fmt::format("compare {0} {1} lacks B: give `compare FILE A B` "
                            "for a program, as `compare {0} {1} tuned`, or "
                            "two plans",
                            options.load.file, options.a));
  MGPU_TRY_ASSIGN(planner::PlanAlone a, readAlone(options.load.file));
  MGPU_TRY_ASSIGN(planner::PlanAlone b, readAlone(options.a));
  planner::PlanDiff diff = planner::diffPlans(a, b);
  if (!options.json) {
    if (a.plan.model != b.plan.model)
      fmt::print("durations: {} -> {}\n", a.plan.model, b.plan.model);
    fmt::print("{}", toText(diff));
    return 0;
  }
  json changes = json::array();
  for (const planner::StepChange &change : diff.changes)
    changes.push_back({{"name", change.name},
                       {"phase_start_us", {change.aStartUs, change.bStartUs}},
                       {"duration_change_us", change.durationUs},
                       {"other_streams", change.hasOtherStreams}});
  json out{{"models", {a.plan.model, b.plan.model}},
           {"transforms", {a.plan.transforms, b.plan.transforms}},
           {"error", {diff.aError, diff.bError}},
           {"load_us", {diff.aLoadUs, diff.bLoadUs}},
           {"replay_us", {diff.aMakespanUs, diff.bMakespanUs}},
           {"fetch_us", {diff.aFetchUs, diff.bFetchUs}},
           {"replay_bound_us", {diff.aLowerBoundUs, diff.bLowerBoundUs}},
           {"largest_arena_bytes", {diff.aArenaBytes, diff.bArenaBytes}},
           {"waits", {diff.aWaits, diff.bWaits}},
           {"same", diff.same},
           {"changed", std::move(changes)},
           {"gone", diff.onlyInA},
           {"new", diff.onlyInB}};
  tools::printJson(out);
  return 0;
}

} // namespace mgpu::tools

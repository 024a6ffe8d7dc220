// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune profile`: the time of each node, beside what the plan predicts.
#include "bench/measure/Summary.h"
#include "capture/replay/Replayer.h"
#include "db/FileSystem.h"
#include "tools/mgpu-tune/Target.h"
#include "tools/mgpu-tune/Tuned.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <unistd.h>

namespace mgpu::tune {

using nlohmann::json;

namespace {

struct NodeProfile {
  planner::NodeId node;
  double predictedUs = 0;
  bench::Summary us;
};

const char *kindOf(const planner::DagNode &node) {
  switch (planner::workClass(node)) {
  case planner::WorkClass::Kernel:
    return "kernel";
  case planner::WorkClass::Copy:
    return "copy";
  case planner::WorkClass::Collective:
    return "collective";
  }
  return "";
}

std::string devicesOf(const planner::DagNode &node) {
  std::string text;
  for (DeviceId device : node.devices)
    text += (text.empty() ? "" : ",") + std::to_string(device.value);
  return text.empty() ? "host" : text;
}

/// One row for each node, under the program's own key: what it takes is a fact
/// of program and machine.
Result<void> store(const std::vector<NodeProfile> &nodes,
                   const Program &program, const TuneContext &context,
                   const tuner::ProgramConfig &config,
                   const std::string &path) {
  MGPU_TRY_ASSIGN(db::TuningStore file, db::TuningStore::open(path));
  db::Problem problem = tuner::programProblem(context.keys(program.dag, false));
  problem.policy = "profile: each node of a replay by itself";
  std::vector<db::Trial> trials;
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  for (const NodeProfile &node : nodes) {
    if (node.us.median.middle <= 0)
      continue; // below what the clock resolves
    db::Pairs pairs = tuner::toPairs(config, program.dag, context.spaces);
    pairs["node"] = std::to_string(node.node.value);
    pairs["name"] = program.dag.node(node.node).name;
    db::Trial trial;
    trial.configuration = db::pairsText(pairs);
    trial.medianUs = node.us.median.middle;
    trial.meanUs = node.us.mean;
    trial.spreadUs = node.us.deviation;
    bool known =
        std::isfinite(node.us.median.low) && std::isfinite(node.us.median.high);
    trial.lowUs = known ? std::max(node.us.median.low, 0.0) : trial.medianUs;
    trial.highUs = known ? node.us.median.high : trial.medianUs;
    trial.samples = node.us.count;
    trial.provenance.version = MGPU_VERSION;
    trial.provenance.host = host;
    trial.provenance.environment = "{}";
    trials.push_back(std::move(trial));
  }
  return file.record(problem, trials);
}

} // namespace

Result<int> runProfile(const Options &options) {
  MGPU_TRY_ASSIGN(Program program, loadProgram(options, false));
  // The file is made if it is not there, so that is no error here.
  Options looking = options;
  MGPU_TRY_ASSIGN(const std::string path, db::databasePath(options.database));
  looking.useTuned &= access(path.c_str(), F_OK) == 0;
  MGPU_TRY_ASSIGN(auto choice, findTuned(program, looking));
  if (!choice) {
    MGPU_TRY_ASSIGN(TuneContext context, makeTuneContext(program, options));
    auto config =
        tuner::defaultConfig(program.dag, context.spaces, context.mostLanes);
    choice = TunedChoice{std::move(context), std::move(config), false};
  }
  MGPU_TRY_ASSIGN(auto inputs, programInputs(program, options));
  tuner::ProgramData data(program.dag, std::move(inputs));
  MGPU_TRY_ASSIGN(planner::Plan plan,
                  tuner::planFor(program.dag, choice->config));
  MGPU_TRY_ASSIGN(auto kernels,
                  compileConfig(program.dag, choice->context, choice->config));
  MGPU_TRY_ASSIGN(auto driver,
                  openTarget(options.target, program.dag.numDevices,
                             OpenOptions{.lanes = choice->config.lanes}));
  MGPU_TRY_ASSIGN(
      capture::Replayer replayer,
      capture::Replayer::create(program.dag, plan, kernels, *driver));
  data.bind(replayer, 0);
  MGPU_TRY(replayer.load());
  MGPU_TRY(replayer.replay()); // warms up
  std::vector<std::vector<double>> times(program.dag.nodes.size());
  std::vector<double> whole;
  for (uint64_t k = 0; k < options.profileRepeat; ++k) {
    MGPU_TRY_ASSIGN(auto spans, replayer.replayTimed());
    double end = 0;
    for (const capture::NodeSpan &span : spans) {
      times[span.node.value].push_back(span.endUs - span.startUs);
      end = std::max(end, span.endUs);
    }
    whole.push_back(end);
  }
  std::vector<NodeProfile> nodes;
  double sum = 0;
  for (const planner::PlanStep &step : plan.steps)
    if (auto &ofNode = times[step.node.value]; !ofNode.empty()) {
      nodes.push_back(
          {step.node, step.durationUs, bench::summarize(std::move(ofNode))});
      sum += nodes.back().us.median.middle;
    }
  const bench::Summary total = bench::summarize(std::move(whole));
  MGPU_TRY(store(nodes, program, choice->context, choice->config, path));

  if (options.json) {
    json out{{"file", options.file},
             {"tuned", choice->isTuned},
             {"model", plan.model},
             {"repeat", options.profileRepeat},
             {"predicted_us", plan.makespanUs},
             {"measured_us", total.median.middle},
             {"database", path}};
    out["nodes"] = json::array();
    for (const NodeProfile &node : nodes) {
      const planner::DagNode &dagNode = program.dag.node(node.node);
      out["nodes"].push_back(
          {{"id", node.node.value},
           {"name", dagNode.name},
           {"kind", kindOf(dagNode)},
           {"devices", devicesOf(dagNode)},
           {"source", dagNode.location},
           {"predicted_us", node.predictedUs},
           {"measured_us", node.us.median.middle},
           {"p25_us", node.us.p25},
           {"p75_us", node.us.p75},
           {"ratio", node.us.median.middle / node.predictedUs}});
    }
    fmt::print("{}\n", out.dump(2));
    return 0;
  }
  std::sort(nodes.begin(), nodes.end(),
            [](const NodeProfile &a, const NodeProfile &b) {
              return a.us.median.middle != b.us.median.middle
                         ? a.us.median.middle > b.us.median.middle
                         : a.node < b.node;
            });
  constexpr size_t mostRows = 40;
  fmt::print("{:<28} {:<10} {:>7} {:>12} {:>12} {:>7} {:>6}\n", "node", "kind",
             "device", "predicted us", "measured us", "ratio", "share");
  for (size_t k = 0; k < std::min(nodes.size(), mostRows); ++k) {
    const NodeProfile &node = nodes[k];
    const planner::DagNode &dagNode = program.dag.node(node.node);
    const double us = node.us.median.middle;
    fmt::print("{:<28} {:<10} {:>7} {:>12.3f} {:>12.3f} {:>7.2f} {:>5.1f}%\n",
               dagNode.name, kindOf(dagNode), devicesOf(dagNode),
               node.predictedUs, us, us / node.predictedUs,
               100 * us / std::max(sum, 1e-12));
  }
  if (nodes.size() > mostRows)
    fmt::print("... and {} more; --json lists all\n", nodes.size() - mostRows);
  fmt::print("replay: {:.3f} us predicted ({}), {:.3f} us measured, median of "
             "{} timed replays; stored in {}\n",
             plan.makespanUs, plan.model, total.median.middle, total.count,
             path);
  return 0;
}

} // namespace mgpu::tune

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune profile`: the time of each node, beside what the plan predicts.
#include "bench/measure/Sampler.h"
#include "bench/measure/Summary.h"
#include "capture/replay/Replayer.h"
#include "db/FileSystem.h"
#include "planner/schedule/HostReplay.h"
#include "tools/mgpu-tune/Target.h"
#include "tools/mgpu-tune/Tuned.h"
#include "tuner/session/MeasuredTimes.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
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

/// What reading the clock around a node adds to its time.
double clockUs() {
  std::vector<double> gaps;
  for (int k = 0; k < 1001; ++k) {
    auto first = std::chrono::steady_clock::now();
    auto second = std::chrono::steady_clock::now();
    gaps.push_back(
        std::chrono::duration<double, std::micro>(second - first).count());
  }
  return bench::median(std::move(gaps));
}

/// A plan ready to be replayed.
struct Runnable {
  std::unique_ptr<device::Driver> driver;
  std::optional<capture::Replayer> replayer;
  std::optional<bench::Sampler> sampler;
  std::vector<double> us;
};

Result<std::unique_ptr<Runnable>>
makeRunnable(const Program &program, const planner::Plan &plan,
             std::span<const std::vector<std::byte>> kernels,
             const tuner::ProgramData &data, const Options &options,
             uint32_t lanes) {
  auto made = std::make_unique<Runnable>();
  MGPU_TRY_ASSIGN(made->driver,
                  openTarget(options.target, program.dag.numDevices,
                             OpenOptions{.lanes = lanes}));
  MGPU_TRY_ASSIGN(
      made->replayer,
      capture::Replayer::create(program.dag, plan, kernels, *made->driver));
  data.bind(*made->replayer, 0);
  MGPU_TRY(made->replayer->load());
  MGPU_TRY(made->replayer->replay()); // warms up
  capture::Replayer *replayer = &*made->replayer;
  made->sampler.emplace([] { return Result<void>(); },
                        [replayer] { return replayer->replay(); });
  return made;
}

/// Replays of each in turn, so that both see the same machine.
Result<void> measureInTurn(std::span<Runnable *const> all, uint64_t samples) {
  for (Runnable *each : all)
    MGPU_TRY(each->sampler->warmUp());
  for (uint64_t k = 0; k < samples; ++k)
    for (Runnable *each : all) {
      MGPU_TRY_ASSIGN(bench::Sample sample, each->sampler->sample());
      each->us.push_back(sample.seconds * 1e6);
    }
  return {};
}

std::string medianText(const bench::Summary &us) {
  return fmt::format("{:.3f} us (half of the samples within {:.3f} to {:.3f})",
                     us.median.middle, us.p25, us.p75);
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
  MGPU_TRY_ASSIGN(planner::Plan plan, planChosen(program.dag, *choice, path));
  MGPU_TRY_ASSIGN(auto kernels,
                  compileConfig(program.dag, choice->context, choice->config));
  const uint32_t lanes = choice->config.lanes;
  MGPU_TRY_ASSIGN(auto planned,
                  makeRunnable(program, plan, kernels, data, options, lanes));
  planner::RooflineEstimator roofline(planner::hostRates(), "host roofline");
  MGPU_TRY_ASSIGN(planner::Plan inOrder,
                  planner::scheduleSerial(program.dag, roofline));
  MGPU_TRY_ASSIGN(auto serial, makeRunnable(program, inOrder, kernels, data,
                                            options, /*lanes=*/1));
  const double clock = clockUs();
  std::vector<std::vector<double>> times(program.dag.nodes.size());
  for (uint64_t k = 0; k < options.profileRepeat; ++k) {
    MGPU_TRY_ASSIGN(auto spans, planned->replayer->replayTimed());
    for (const capture::NodeSpan &span : spans)
      times[span.node.value].push_back(
          std::max(span.endUs - span.startUs - clock, 0.0));
  }
  Runnable *both[] = {planned.get(), serial.get()};
  MGPU_TRY(measureInTurn(both, options.profileRepeat));
  const bench::Summary total = bench::summarize(std::move(planned->us));
  const bench::Summary plain = bench::summarize(std::move(serial->us));
  {
    MGPU_TRY_ASSIGN(db::TuningStore file, db::TuningStore::open(path));
    MGPU_TRY(tuner::storeNodeTimes(choice->context.keys(program.dag, false),
                                   choice->config, times, file));
  }
  std::vector<NodeProfile> nodes;
  double sum = 0;
  planner::Plan measured = plan;
  for (planner::PlanStep &step : measured.steps)
    if (auto &ofNode = times[step.node.value]; !ofNode.empty()) {
      nodes.push_back(
          {step.node, step.durationUs, bench::summarize(std::move(ofNode))});
      step.durationUs = nodes.back().us.median.middle;
      sum += step.durationUs;
    }
  const double beforeUs = planner::hostReplayUs(plan, program.dag, lanes);
  const double afterUs = planner::hostReplayUs(measured, program.dag, lanes);
  const double error = 100 * (afterUs / total.median.middle - 1);

  if (options.json) {
    json out{{"file", options.file},
             {"tuned", choice->isTuned},
             {"model", plan.model},
             {"repeat", options.profileRepeat},
             {"threads", lanes},
             {"predicted_before_us", beforeUs},
             {"predicted_us", afterUs},
             {"measured_us", total.median.middle},
             {"measured_p25_us", total.p25},
             {"measured_p75_us", total.p75},
             {"error_percent", error},
             {"serial_us", plain.median.middle},
             {"serial_p25_us", plain.p25},
             {"serial_p75_us", plain.p75},
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
           {"ratio", node.predictedUs > 0
                         ? node.us.median.middle / node.predictedUs
                         : 0}});
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
  fmt::print("replay on {} threads: {:.3f} us predicted from these times "
             "({:+.1f} %; {:.3f} us before, {}), {} measured, {} samples\n"
             "serial on one thread: {}; planned is {:+.1f} %\n"
             "stored in {}\n",
             lanes, afterUs, error, beforeUs, plan.model, medianText(total),
             total.count, medianText(plain),
             100 * (total.median.middle / plain.median.middle - 1), path);
  return 0;
}

} // namespace mgpu::tune

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

/// A plan ready to be replayed, and what its replays took.
struct Runnable {
  planner::Plan plan;
  uint32_t threads = 1;
  std::unique_ptr<device::Driver> driver;
  std::optional<capture::Replayer> replayer;
  std::optional<bench::Sampler> sampler;
  std::vector<double> us;                 ///< of whole replays
  std::vector<std::vector<double>> times; ///< by NodeId, of timed ones
};

Result<std::unique_ptr<Runnable>>
makeRunnable(const Program &program, planner::Plan plan,
             std::span<const std::vector<std::byte>> kernels,
             const tuner::ProgramData &data, const Options &options,
             uint32_t threads) {
  auto made = std::make_unique<Runnable>();
  made->plan = std::move(plan);
  made->threads = threads;
  made->times.resize(program.dag.nodes.size());
  MGPU_TRY_ASSIGN(made->driver,
                  openTarget(options.target, program.dag.numDevices,
                             OpenOptions{.lanes = threads}));
  MGPU_TRY_ASSIGN(made->replayer,
                  capture::Replayer::create(program.dag, made->plan, kernels,
                                            *made->driver));
  data.bind(*made->replayer, 0);
  MGPU_TRY(made->replayer->load());
  capture::Replayer *replayer = &*made->replayer;
  made->sampler.emplace([] { return Result<void>(); },
                        [replayer] { return replayer->replay(); });
  MGPU_TRY(made->sampler->warmUp());
  return made;
}

/// Replays of each in turn, so that all see the same machine, and after them
/// timed ones of all but the first, the serial order: of short replays many,
/// without the one that finds the caches as the sampler left them.
Result<void> measureInTurn(std::span<const std::unique_ptr<Runnable>> all,
                           uint64_t rounds) {
  constexpr double burstUs = 500; // as long as a sample
  constexpr uint64_t mostInBurst = 20;
  const double clock = clockUs();
  for (uint64_t k = 0; k < rounds; ++k)
    for (const std::unique_ptr<Runnable> &each : all) {
      MGPU_TRY_ASSIGN(bench::Sample sample, each->sampler->sample());
      double us = sample.seconds * 1e6;
      each->us.push_back(us);
      if (each == all[0])
        continue;
      uint64_t burst = std::clamp<uint64_t>(
          uint64_t(burstUs / std::max(us, 1e-3)), 1, mostInBurst);
      for (uint64_t j = 0; j < burst; ++j) {
        MGPU_TRY_ASSIGN(auto spans, each->replayer->replayTimed());
        if (j == 0 && burst > 1)
          continue;
        for (const capture::NodeSpan &span : spans)
          each->times[span.node.value].push_back(
              std::max(span.endUs - span.startUs - clock, 0.0));
      }
    }
  return {};
}

/// How times of nodes between readings of the clock become those of nodes in a
/// replay without: `lessUs` less, but not below 0, times `factor`.
struct Correction {
  double lessUs = 0, factor = 1;
  double of(double us) const { return std::max(us - lessUs, 0.0) * factor; }
};

/// So that on one thread the medians of `run` add up to `measuredUs`. Reading
/// the clock delays each node by as much; what is missing is in all nodes in
/// proportion.
Correction correctionFor(const Runnable &run, const planner::Dag &dag,
                         double measuredUs) {
  std::vector<std::pair<double, double>> nodes; // median, how often it runs
  auto sum = [&](const Correction &with) {
    double us = 0;
    for (auto [median, count] : nodes)
      us += count * (with.of(median) + planner::hostNodeUs);
    return us;
  };
  for (uint32_t id = 0; id < run.times.size(); ++id)
    if (!run.times[id].empty())
      nodes.push_back({bench::median(run.times[id]),
                       dag.nodes[id].phase == planner::Phase::Replay
                           ? double(dag.loop.trips)
                           : 1.0});
  Correction none, result;
  double all = sum(none), overhead = sum({0, 0});
  if (all <= measuredUs) {
    if (all > overhead)
      result.factor = (measuredUs - overhead) / (all - overhead);
    return result;
  }
  double low = 0, high = all;
  for (int k = 0; k < 60; ++k) {
    result.lessUs = (low + high) / 2;
    (sum(result) > measuredUs ? low : high) = result.lessUs;
  }
  return result;
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
  MGPU_TRY_ASSIGN(auto kernels,
                  compileConfig(program.dag, choice->context, choice->config));
  // The serial order, then the planned one on each number of threads it may
  // run on.
  std::vector<std::unique_ptr<Runnable>> all;
  planner::RooflineEstimator roofline(planner::hostRates(), "host roofline");
  MGPU_TRY_ASSIGN(planner::Plan inOrder,
                  planner::scheduleSerial(program.dag, roofline));
  MGPU_TRY_ASSIGN(all.emplace_back(),
                  makeRunnable(program, std::move(inOrder), kernels, data,
                               options, /*threads=*/1));
  std::vector<uint32_t> threadCounts{choice->config.lanes};
  if (!choice->isTuned) {
    threadCounts = {1};
    if (choice->context.mostLanes > 1)
      threadCounts.push_back(choice->context.mostLanes);
  }
  for (uint32_t threads : threadCounts) {
    choice->config.lanes = threads;
    MGPU_TRY_ASSIGN(planner::Plan plan, planChosen(program.dag, *choice, path));
    MGPU_TRY_ASSIGN(all.emplace_back(),
                    makeRunnable(program, std::move(plan), kernels, data,
                                 options, threads));
  }
  MGPU_TRY(measureInTurn(all, options.profileRepeat));
  const bench::Summary plain = bench::summarize(std::move(all[0]->us));
  std::vector<bench::Summary> totals(1);
  size_t best = 1;
  if (threadCounts[0] == 1) {
    Correction correction =
        correctionFor(*all[1], program.dag, bench::median(all[1]->us));
    for (size_t k = 1; k < all.size(); ++k)
      for (std::vector<double> &ofNode : all[k]->times)
        for (double &us : ofNode)
          us = correction.of(us);
  }
  {
    MGPU_TRY_ASSIGN(db::TuningStore file, db::TuningStore::open(path));
    auto keys = choice->context.keys(program.dag, false);
    for (size_t k = 1; k < all.size(); ++k) {
      choice->config.lanes = all[k]->threads;
      MGPU_TRY(
          tuner::storeNodeTimes(keys, choice->config, all[k]->times, file));
      totals.push_back(bench::summarize(std::move(all[k]->us)));
      // Another thread must not only be faster at times.
      if (totals[k].p75 < totals[best].p75)
        best = k;
    }
    if (!choice->isTuned)
      MGPU_TRY(
          tuner::storeThreads(keys, all[best]->threads, totals[best], file));
  }
  const planner::Plan &plan = all[best]->plan;
  const uint32_t lanes = all[best]->threads;
  const bench::Summary &total = totals[best];
  auto &times = all[best]->times;
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
           {"kind", toString(planner::workClass(dagNode))},
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
               dagNode.name, toString(planner::workClass(dagNode)),
               devicesOf(dagNode), node.predictedUs, us, us / node.predictedUs,
               100 * us / std::max(sum, 1e-12));
  }
  if (nodes.size() > mostRows)
    fmt::print("... and {} more; --json lists all\n", nodes.size() - mostRows);
  for (size_t k = 1; k < all.size(); ++k)
    if (k != best)
      fmt::print("replay on {} threads: {}\n", all[k]->threads,
                 medianText(totals[k]));
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

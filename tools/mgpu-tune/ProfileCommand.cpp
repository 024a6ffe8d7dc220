// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune profile`: the time of each node, beside what the plan predicts.
#include "db/FileSystem.h"
#include "planner/schedule/Schedulers.h"
#include "tools/mgpu-tune/Target.h"
#include "tools/mgpu-tune/Tuned.h"
#include "tuner/session/MeasuredTimes.h"
#include "tuner/session/ProfileFacts.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <unistd.h>

namespace mgpu::tune {

using nlohmann::json;
using tuner::NodeProfile;
using tuner::ProfileFacts;

namespace {

/// The tuned configuration, else the default one.
Result<TunedChoice> chooseFor(const Program &program, const Options &options,
                              const std::string &path) {
  // The file is made if it is not there, so that is no error here.
  Options looking = options;
  looking.useTuned &= access(path.c_str(), F_OK) == 0;
  MGPU_TRY_ASSIGN(auto choice, findTuned(program, looking));
  if (choice)
    return std::move(*choice);
  MGPU_TRY_ASSIGN(TuneContext context, makeTuneContext(program, options));
  auto config =
      tuner::defaultConfig(program.dag, context.spaces, context.limits);
  return TunedChoice{std::move(context), std::move(config), false};
}

/// On the threads it was tuned for; else on one, and on as many as there may
/// be.
std::vector<uint32_t> threadCounts(const TunedChoice &choice) {
  if (choice.isTuned)
    return {choice.config.lanes};
  if (const uint32_t most = choice.context.limits.mostLanes; most > 1)
    return {1, most};
  return {1};
}

std::string medianText(const tuner::Quartiles &us) {
  return fmt::format("{:.3f} us (half of the samples within {:.3f} to {:.3f})",
                     us.us, us.p25Us, us.p75Us);
}

double errorPercent(const ProfileFacts &facts) {
  return 100 * (facts.recomputedUs / facts.replay.us - 1);
}

json toJson(const ProfileFacts &facts, const TunedChoice &choice,
            const Options &options, const std::string &path) {
  json out{{"file", options.file},
           {"tuned", choice.isTuned},
           {"model", facts.model},
           {"repeat", options.profileRepeat},
           {"threads", facts.threads},
           {"pinned_cpus", facts.pinnedCpus},
           {"predicted_before_us", facts.predictedUs},
           {"predicted_us", facts.recomputedUs},
           {"measured_us", facts.replay.us},
           {"measured_p25_us", facts.replay.p25Us},
           {"measured_p75_us", facts.replay.p75Us},
           {"error_percent", errorPercent(facts)},
           {"serial_us", facts.serial.us},
           {"serial_p25_us", facts.serial.p25Us},
           {"serial_p75_us", facts.serial.p75Us},
           {"database", path}};
  out["nodes"] = json::array();
  for (const NodeProfile &node : facts.nodes)
    out["nodes"].push_back(tuner::toJson(node));
  return out;
}

void printNodes(std::vector<NodeProfile> nodes) {
  double sum = 0;
  for (const NodeProfile &node : nodes)
    sum += node.measured.us;
  std::sort(nodes.begin(), nodes.end(),
            [](const NodeProfile &a, const NodeProfile &b) {
              return a.measured.us != b.measured.us
                         ? a.measured.us > b.measured.us
                         : a.node < b.node;
            });
  constexpr size_t mostRows = 40;
  fmt::print("{:<28} {:<10} {:>7} {:>12} {:>12} {:>7} {:>6}\n", "node", "kind",
             "device", "predicted us", "measured us", "ratio", "share");
  for (size_t k = 0; k < std::min(nodes.size(), mostRows); ++k) {
    const NodeProfile &node = nodes[k];
    fmt::print("{:<28} {:<10} {:>7} {:>12.3f} {:>12.3f} {:>7.2f} {:>5.1f}%\n",
               node.name, toString(node.kind), node.devices, node.predictedUs,
               node.measured.us, node.ratio(),
               100 * node.measured.us / std::max(sum, 1e-12));
  }
  if (nodes.size() > mostRows)
    fmt::print("... and {} more; --json lists all\n", nodes.size() - mostRows);
}

void print(const ProfileFacts &facts, const std::string &path) {
  fmt::print("replay on {} threads: {:.3f} us predicted from these times "
             "({:+.1f} %; {:.3f} us before, {}), {} measured, {} samples\n"
             "serial on one thread: {}; planned is {:+.1f} %\n"
             "stored in {}\n",
             facts.threads, facts.recomputedUs, errorPercent(facts),
             facts.predictedUs, facts.model, medianText(facts.replay),
             facts.samples, medianText(facts.serial),
             100 * (facts.replay.us / facts.serial.us - 1), path);
}

} // namespace

Result<int> runProfile(const Options &options) {
  if (isCudaTarget(options.target))
    return fail(ErrorKind::Unsupported,
                fmt::format("target '{}': this version profiles on 'host' only "
                            "(docs/limits.md); `run --trace` times the nodes "
                            "of a replay",
                            options.target));
  MGPU_TRY_ASSIGN(Program program, loadProgram(options, false));
  MGPU_TRY_ASSIGN(const std::string path, db::databasePath(options.database));
  MGPU_TRY_ASSIGN(TunedChoice choice, chooseFor(program, options, path));
  const db::Problem key =
      tuner::programProblem(choice.context.keys(program.dag, false));
  MGPU_TRY_ASSIGN(auto inputs, programInputs(program, options));
  std::optional<tuner::ProgramFacts> about;
  if (!choice.isTuned) // else `tune` has said it
    about = factsOf(program, choice.context, options);
  MGPU_TRY(transformChosen(program, choice));
  tuner::ProgramData data(program.dag, std::move(inputs));
  MGPU_TRY_ASSIGN(auto kernels, compileConfig(program.dag, choice.context,
                                              choice.config, options));
  planner::RooflineEstimator roofline(planner::hostRates(), "host roofline");
  MGPU_TRY_ASSIGN(planner::Plan serial,
                  planner::scheduleSerial(program.dag, roofline));
  std::vector<tuner::ProfileSubject> subjects;
  for (uint32_t threads : threadCounts(choice)) {
    choice.config.lanes = threads;
    MGPU_TRY_ASSIGN(planner::Plan plan, planChosen(program.dag, choice, path));
    subjects.push_back({std::move(plan), threads});
  }
  auto open = [&](uint32_t devices, uint32_t lanes,
                  std::span<const int> workerCpus) {
    return openTarget(options.target, devices,
                      OpenOptions{.lanes = lanes, .workerCpus = workerCpus});
  };
  const std::vector<int> cpus =
      options.pinThreads ? bench::cpusInOrder() : std::vector<int>();
  choice.context.environment.pinnedCpus = bench::cpusText(cpus);
  MGPU_TRY_ASSIGN(
      tuner::Profile profile,
      tuner::measureProfile({program.dag, kernels, data, open, cpus}, serial,
                            subjects, options.profileRepeat));
  const size_t best = profile.fastest();
  MGPU_TRY_ASSIGN(db::TuningStore store, db::TuningStore::open(path));
  const tuner::KeyInput keys = choice.context.keys(program.dag, false);
  for (size_t k = 0; k < subjects.size(); ++k) {
    choice.config.lanes = subjects[k].threads;
    MGPU_TRY(tuner::storeNodeTimes(keys, choice.config,
                                   profile.subjects[k].nodeUs, store));
  }
  choice.config.lanes = subjects[best].threads;
  if (!choice.isTuned)
    MGPU_TRY(tuner::storeThreads(keys, choice.config.lanes,
                                 profile.subjects[best].replayUs, store));
  ProfileFacts facts = tuner::describeProfile(
      program.dag,
      tuner::toPairs(choice.config, program.dag, choice.context.spaces),
      subjects[best], profile.subjects[best], profile.serialUs);
  facts.pinnedCpus = bench::cpusText(bench::cpusFor(cpus, choice.config.lanes));
  if (about) {
    about->peaks = bench::measurePeaks();
    tuner::addMeasured(*about, program.dag, subjects[best],
                       profile.subjects[best]);
    facts.program = std::move(about);
  }
  MGPU_TRY(tuner::storeProfile(key, facts, MGPU_VERSION, store));

  if (options.json) {
    fmt::print("{}\n",
               toJson(facts, choice, options, path)
                   .dump(2, ' ', false, json::error_handler_t::replace));
    return 0;
  }
  printNodes(facts.nodes);
  for (size_t k = 0; k < subjects.size(); ++k)
    if (k != best)
      fmt::print(
          "replay on {} threads: {}\n", subjects[k].threads,
          medianText(tuner::Quartiles::of(profile.subjects[k].replayUs)));
  print(facts, path);
  return 0;
}

} // namespace mgpu::tune

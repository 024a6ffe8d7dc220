// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/record/MeasuredTimes.h"

#include "planner/schedule/HostReplay.h"
#include "support/Number.h"
#include "support/Units.h"
#include "tuner/record/Provenance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>

namespace mgpu::tuner {

using namespace planner;

static std::string shapeOf(const Box &box) {
  return fmt::format("{}:{}:{}", fmt::join(box.sizes, "x"),
                     fmt::join(box.strides, "x"), box.elementBytes);
}

/// All that a kernel call's time depends on, without the kernel itself.
static db::Pairs shapeOf(const KernelCall &call, const ProgramConfig &config) {
  db::Pairs shape;
  shape["grid"] =
      fmt::format("{}x{}x{}", call.grid.x, call.grid.y, call.grid.z);
  if (call.part)
    shape["part"] =
        fmt::format("{}+{}x{}+{}x{}+{}", call.part->first.x, call.part->count.x,
                    call.part->first.y, call.part->count.y, call.part->first.z,
                    call.part->count.z);
  for (size_t k = 0; k < call.arguments.size(); ++k)
    if (auto *bits = std::get_if<uint64_t>(&call.arguments[k].value))
      shape[fmt::format("scalar{}", k)] = fmt::format("{:x}", *bits);
  if (call.kernel.value < config.kernels.size())
    shape["config"] = toText(config.kernels[call.kernel.value]);
  return shape;
}

static db::Pairs shapeOf(const CopyCall &copy, const Dag &dag) {
  DeviceId from = dag.buffer(copy.source).device,
           to = dag.buffer(copy.destination).device;
  auto name = [](DeviceId device) {
    return device.isHost() ? "host" : "device";
  };
  return {{"from", name(from)},
          {"to", from == to ? "same" : name(to)},
          {"source", shapeOf(copy.sourceBox)},
          {"destination", shapeOf(copy.destinationBox)}};
}

static db::Pairs shapeOf(const CollectiveCall &call) {
  db::Pairs shape = {{"type", std::string(toString(call.elementType))},
                     {"reduction", std::string(toString(call.reduction))},
                     {"root", std::to_string(call.root)},
                     {"ranks", std::to_string(call.members.size())}};
  if (call.kind == CollectiveKind::Permute)
    shape["pairs"] = toString(call.pairs);
  for (size_t k = 0; k < call.members.size(); ++k) {
    const CollectiveMember &member = call.members[k];
    shape[fmt::format("member{}", k)] =
        fmt::format("{} {}{}", shapeOf(member.sendBox), shapeOf(member.recvBox),
                    member.send == member.recv ? " in place" : "");
  }
  return shape;
}

static std::string programOf(const CollectiveCall &call) {
  return fmt::format("collective {}", toString(call.kind));
}

std::optional<db::TuningProblem>
nodeProblem(const KeyInput &input, const ProgramConfig &config, NodeId id) {
  const DagNode &node = input.dag.node(id);
  db::TuningProblem problem;
  db::Pairs shape;
  if (auto *kernel = std::get_if<KernelCall>(&node.work)) {
    problem = kernelProblem(input, kernel->kernel, kernel->grid);
    shape = shapeOf(*kernel, config);
  } else if (auto *copy = std::get_if<CopyCall>(&node.work)) {
    problem = machineProblem(input);
    problem.program = "copy";
    shape = shapeOf(*copy, input.dag);
  } else if (auto *call = std::get_if<CollectiveCall>(&node.work)) {
    problem = machineProblem(input);
    problem.program = programOf(*call);
    shape = shapeOf(*call);
  } else {
    return std::nullopt;
  }
  problem.shape = db::pairsText(shape);
  problem.policy = fmt::format("a node of timed replays on {} threads, without "
                               "what reading the clock costs",
                               config.threads);
  return problem;
}

std::string workText(const Dag &dag, NodeId id) {
  const DagNode &node = dag.node(id);
  if (auto *kernel = std::get_if<KernelCall>(&node.work))
    return fmt::format("{} {}", kernel->kernel.value,
                       db::pairsText(shapeOf(*kernel, {})));
  if (auto *copy = std::get_if<CopyCall>(&node.work))
    return "copy " + db::pairsText(shapeOf(*copy, dag));
  if (auto *call = std::get_if<CollectiveCall>(&node.work))
    return programOf(*call) + " " + db::pairsText(shapeOf(*call));
  return fmt::format("node {}", id.value);
}

Result<NodeTimes> readNodeTimes(const KeyInput &input,
                                const ProgramConfig &config,
                                db::TuningStore &store) {
  NodeTimes times(input.dag.nodes.size());
  std::map<std::string, std::optional<double>> known;
  for (uint32_t i = 0; i < times.size(); ++i) {
    // The problem has the hash of the kernel, which takes its time.
    auto [at, isNew] = known.try_emplace(workText(input.dag, {i}));
    if (auto problem = isNew ? nodeProblem(input, config, {i}) : std::nullopt) {
      MGPU_TRY_ASSIGN(db::Trials trials, store.trials(*problem));
      if (!trials.trials.empty() && trials.trials.back().medianUs > 0)
        at->second = trials.trials.back().medianUs;
    }
    times[i] = at->second;
  }
  return times;
}

static db::Trial trialOf(const KeyInput &input, db::Pairs configuration,
                         const bench::Summary &us) {
  db::Trial trial;
  trial.configuration = db::pairsText(configuration);
  trial.medianUs = us.median.middle;
  trial.meanUs = us.mean;
  trial.spreadUs = us.deviation;
  bool known = std::isfinite(us.median.low) && std::isfinite(us.median.high);
  trial.lowUs = known ? std::max(us.median.low, 0.0) : trial.medianUs;
  trial.highUs = known ? us.median.high : trial.medianUs;
  trial.samples = us.count;
  trial.provenance =
      provenanceHere(input.version, input.environment.pinnedCpus);
  return trial;
}

static db::TuningProblem threadsProblem(const KeyInput &input) {
  db::TuningProblem problem = programProblem(input);
  problem.policy = "profile: replays of the default order on the number of "
                   "threads that was chosen";
  return problem;
}

Result<void> storeThreads(const KeyInput &input, uint32_t threads,
                          const bench::Summary &us, db::TuningStore &store) {
  if (us.median.middle <= 0)
    return {};
  return store.record(
      threadsProblem(input),
      trialOf(input, {{"threads", std::to_string(threads)}}, us));
}

Result<std::optional<uint32_t>> readThreads(const KeyInput &input,
                                            db::TuningStore &store) {
  MGPU_TRY_ASSIGN(db::Trials found, store.trials(threadsProblem(input)));
  if (found.trials.empty())
    return std::optional<uint32_t>();
  MGPU_TRY_ASSIGN(db::Pairs pairs,
                  db::parsePairs(found.trials.back().configuration));
  auto threads = numberFrom<uint32_t>(pairs["threads"]);
  return threads && *threads >= 1 && *threads <= 1024
             ? threads
             : std::optional<uint32_t>();
}

Result<void> storeNodeTimes(const KeyInput &input, const ProgramConfig &config,
                            const std::vector<std::vector<double>> &samples,
                            db::TuningStore &store) {
  struct Work {
    std::optional<db::TuningProblem> problem;
    std::vector<double> samples;
  };
  std::map<std::string, Work> works;
  for (uint32_t i = 0; i < samples.size(); ++i) {
    if (samples[i].empty())
      continue;
    auto [at, isNew] = works.try_emplace(workText(input.dag, {i}));
    Work &work = at->second;
    if (isNew)
      work.problem = nodeProblem(input, config, {i});
    work.samples.insert(work.samples.end(), samples[i].begin(),
                        samples[i].end());
  }
  for (auto &[key, work] : works) {
    bench::Summary us = bench::summarize(std::move(work.samples));
    // Else it is below what the clock resolves.
    if (work.problem && us.median.middle > 0)
      MGPU_TRY(store.record(*work.problem,
                            trialOf(input, {{"node", "profiled"}}, us)));
  }
  return {};
}

using nlohmann::json;

Measured measuredOf(const bench::Summary &seconds) {
  const bench::Interval &median = seconds.median;
  Measured out{median.middle * 1e6, median.low * 1e6, median.high * 1e6,
               seconds.count};
  if (!std::isfinite(out.lowUs) || !std::isfinite(out.highUs))
    out.lowUs = out.highUs = out.us;
  return out;
}

static json toJson(const Measured &measured) {
  return {{"median_us", measured.us},
          {"low_us", measured.lowUs},
          {"high_us", measured.highUs},
          {"samples", measured.samples}};
}

static Measured measuredFromJson(const json &from) {
  return {from.at("median_us").get<double>(), from.at("low_us").get<double>(),
          from.at("high_us").get<double>(), from.at("samples").get<uint64_t>()};
}

json toJson(const DecidedTimes &times) {
  json out{{"default", toJson(times.before)},
           {"tuned", toJson(times.after)},
           {"pairs", times.pairs},
           {"processes", times.processes},
           {"verdict", times.verdict},
           {"comparison", times.sentence},
           {"undecided", times.isUndecided},
           {"warnings", times.warnings},
           {"change", nullptr}};
  if (times.change)
    out["change"] = {times.change->middle, times.change->low,
                     times.change->high};
  return out;
}

std::optional<DecidedTimes> decidedTimesFromJson(const json &from) {
  try {
    DecidedTimes times;
    times.before = measuredFromJson(from.at("default"));
    times.after = measuredFromJson(from.at("tuned"));
    from.at("pairs").get_to(times.pairs);
    from.at("processes").get_to(times.processes);
    from.at("verdict").get_to(times.verdict);
    from.at("comparison").get_to(times.sentence);
    from.at("undecided").get_to(times.isUndecided);
    from.at("warnings").get_to(times.warnings);
    if (const json &change = from.at("change"); change.is_array())
      times.change = bench::Interval{change.at(0).get<double>(),
                                     change.at(1).get<double>(),
                                     change.at(2).get<double>()};
    return times;
  } catch (const json::exception &) {
    return std::nullopt;
  }
}

std::optional<DecidedTimes> decidedTimesOf(const db::Trial &trial) {
  if (trial.status != db::TrialStatus::Ok)
    return std::nullopt;
  const json about = json::parse(trial.provenance.environment, nullptr, false);
  if (!about.is_object() || !about.contains("session") ||
      !about["session"].is_object() || !about["session"].contains("times"))
    return std::nullopt;
  return decidedTimesFromJson(about["session"]["times"]);
}

std::string measuredText(const Measured &measured) {
  if (measured.lowUs >= measured.highUs)
    return durationText(measured.us);
  return fmt::format("{} [{}, {}]", durationText(measured.us),
                     durationText(measured.lowUs),
                     durationText(measured.highUs));
}

std::string decidedText(const DecidedTimes &times) {
  std::string text = fmt::format("default  {}\ntuned    {}: {}\n",
                                 durationText(times.before.us),
                                 durationText(times.after.us), times.sentence);
  for (const std::string &warning : times.warnings)
    text += fmt::format("warning  {}\n", warning);
  return text;
}

PriorTimes::PriorTimes(const Dag &program, const NodeTimes &timed,
                       const LatencyEstimator &model)
    : model(model), kernels(program.kernels.size()) {
  for (uint32_t i = 0; i < program.nodes.size(); ++i) {
    if (i >= timed.size() || !timed[i] || *timed[i] <= 0)
      continue;
    const DagNode &node = program.nodes[i];
    known.emplace(workText(program, {i}), *timed[i]);
    auto add = [&](Ratio &ratio) {
      ratio.measuredUs += *timed[i];
      ratio.modelUs += model.durationUs(program, {i});
    };
    add(kinds[size_t(workClass(node))]);
    if (auto *call = std::get_if<KernelCall>(&node.work))
      add(kernels[call->kernel.value]);
  }
}

double PriorTimes::durationUs(const Dag &dag, NodeId id) const {
  if (auto at = known.find(workText(dag, id)); at != known.end())
    return at->second;
  const DagNode &node = dag.node(id);
  const double us = model.durationUs(dag, id);
  if (auto *call = std::get_if<KernelCall>(&node.work))
    if (const Ratio &ratio = kernels[call->kernel.value]; ratio.isKnown())
      return us * ratio();
  const Ratio &ratio = kinds[size_t(workClass(node))];
  return ratio.isKnown() ? us * ratio() : us;
}

Result<double> predictedUs(const Dag &dag, const ProgramConfig &config,
                           const Machine &machine,
                           const LatencyEstimator &times) {
  MGPU_TRY_ASSIGN(Plan plan, planOf(dag, config, machine));
  for (PlanStep &step : plan.steps)
    step.durationUs = times.durationUs(dag, step.node);
  return hostReplayUs(plan, dag, config.threads);
}

} // namespace mgpu::tuner

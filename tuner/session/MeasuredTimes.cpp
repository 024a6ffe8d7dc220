// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/session/MeasuredTimes.h"

#include "tuner/session/Provenance.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

namespace mgpu::tuner {

using namespace planner;

static std::string shapeOf(const Box &box) {
  return fmt::format("{}:{}:{}", fmt::join(box.sizes, "x"),
                     fmt::join(box.strides, "x"), box.elementBytes);
}

std::optional<db::Problem> nodeProblem(const KeyInput &input,
                                       const ProgramConfig &config, NodeId id) {
  const Dag &dag = input.dag;
  const DagNode &node = dag.node(id);
  db::Problem problem;
  db::Pairs shape;
  if (auto *call = std::get_if<KernelCall>(&node.work)) {
    problem = kernelProblem(input, call->kernel, call->grid);
    shape["grid"] =
        fmt::format("{}x{}x{}", call->grid.x, call->grid.y, call->grid.z);
    if (call->part)
      shape["part"] = fmt::format("{}+{}x{}+{}x{}+{}", call->part->first.x,
                                  call->part->count.x, call->part->first.y,
                                  call->part->count.y, call->part->first.z,
                                  call->part->count.z);
    for (size_t k = 0; k < call->arguments.size(); ++k)
      if (auto *bits = std::get_if<uint64_t>(&call->arguments[k].value))
        shape[fmt::format("scalar{}", k)] = fmt::format("{:x}", *bits);
    if (call->kernel.value < config.kernels.size())
      shape["config"] = toText(config.kernels[call->kernel.value]);
  } else if (auto *copy = std::get_if<CopyCall>(&node.work)) {
    problem = machineProblem(input);
    problem.program = "copy";
    DeviceId from = dag.buffer(copy->source).device,
             to = dag.buffer(copy->destination).device;
    auto name = [](DeviceId device) {
      return device.isHost() ? "host" : "device";
    };
    shape = {{"from", name(from)},
             {"to", from == to ? "same" : name(to)},
             {"source", shapeOf(copy->sourceBox)},
             {"destination", shapeOf(copy->destinationBox)}};
  } else if (auto *call = std::get_if<CollectiveCall>(&node.work)) {
    problem = machineProblem(input);
    problem.program = fmt::format("collective {}", toString(call->kind));
    shape = {{"type", std::string(toString(call->elementType))},
             {"reduction", std::string(toString(call->reduction))},
             {"root", std::to_string(call->root)},
             {"ranks", std::to_string(call->members.size())}};
    for (size_t k = 0; k < call->members.size(); ++k) {
      const CollectiveMember &member = call->members[k];
      shape[fmt::format("member{}", k)] = fmt::format(
          "{} {}{}", shapeOf(member.sendBox), shapeOf(member.recvBox),
          member.send == member.recv ? " in place" : "");
    }
  } else {
    return std::nullopt;
  }
  problem.shape = db::pairsText(shape);
  problem.policy = fmt::format("a node of timed replays on {} threads, without "
                               "what reading the clock costs",
                               config.lanes);
  return problem;
}

Result<NodeTimes> readNodeTimes(const KeyInput &input,
                                const ProgramConfig &config,
                                db::TuningStore &store) {
  NodeTimes times(input.dag.nodes.size());
  std::map<std::string, std::optional<double>> known;
  for (uint32_t i = 0; i < times.size(); ++i) {
    auto problem = nodeProblem(input, config, {i});
    if (!problem)
      continue;
    auto [at, isNew] = known.try_emplace(problem->key());
    if (isNew) {
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
  trial.provenance = provenanceHere(input.version);
  return trial;
}

static db::Problem threadsProblem(const KeyInput &input) {
  db::Problem problem = programProblem(input);
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
  uint32_t threads = 0;
  if (found.trials.empty())
    return std::optional<uint32_t>();
  MGPU_TRY_ASSIGN(db::Pairs pairs,
                  db::parsePairs(found.trials.back().configuration));
  const std::string &text = pairs["threads"];
  auto [end, code] =
      std::from_chars(text.data(), text.data() + text.size(), threads);
  if (code != std::errc() || threads == 0 || threads > 1024)
    return std::optional<uint32_t>();
  return std::optional(threads);
}

Result<void> storeNodeTimes(const KeyInput &input, const ProgramConfig &config,
                            const std::vector<std::vector<double>> &samples,
                            db::TuningStore &store) {
  struct Work {
    db::Problem problem;
    std::vector<double> samples;
  };
  std::map<std::string, Work> works;
  for (uint32_t i = 0; i < samples.size(); ++i) {
    if (samples[i].empty())
      continue;
    auto problem = nodeProblem(input, config, {i});
    if (!problem)
      continue;
    Work &work = works[problem->key()];
    work.problem = std::move(*problem);
    work.samples.insert(work.samples.end(), samples[i].begin(),
                        samples[i].end());
  }
  for (auto &[key, work] : works) {
    bench::Summary us = bench::summarize(std::move(work.samples));
    if (us.median.middle > 0) // else below what the clock resolves
      MGPU_TRY(store.record(work.problem,
                            trialOf(input, {{"node", "profiled"}}, us)));
  }
  return {};
}

double MeasuredEstimator::durationUs(const Dag &dag, NodeId node) const {
  return times[node.value] ? *times[node.value] : model.durationUs(dag, node);
}

size_t MeasuredEstimator::numMeasured() const {
  return size_t(std::count_if(times.begin(), times.end(),
                              [](const auto &us) { return us.has_value(); }));
}

std::string MeasuredEstimator::name() const {
  return fmt::format("measured: {} of {} nodes; {}", numMeasured(),
                     times.size(), model.name());
}

} // namespace mgpu::tuner

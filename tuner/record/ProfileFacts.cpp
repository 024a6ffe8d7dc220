// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/record/ProfileFacts.h"

#include "planner/schedule/HostReplay.h"
#include "planner/schedule/Simulate.h"
#include "tuner/record/Keys.h"
#include "tuner/record/Provenance.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace mgpu::tuner {

using namespace planner;
using nlohmann::json;

/// Each takes about two hundred bytes in the database.
static constexpr size_t mostStoredNodes = 5000;

static std::string devicesOf(const DagNode &node) {
  std::string text;
  for (DeviceId device : node.devices)
    text += (text.empty() ? "" : ",") + std::to_string(device.value);
  return text.empty() ? "host" : text;
}

/// The time of a plan on a host's threads or, without any, on a GPU: the plan's
/// own times, and each further trip of a rolled loop takes as long as the
/// first.
static double replayUs(const Plan &plan, const Dag &dag, uint32_t threads) {
  if (threads > 0)
    return hostReplayUs(plan, dag, threads);
  return simulate(plan, dag, {}).makespanUs;
}

Quartiles Quartiles::of(const bench::Summary &us) {
  return {us.median.middle, us.p25, us.p75};
}

ProfileFacts describeProfile(const Dag &dag, db::Pairs configuration,
                             const bench::ProfileSubject &subject,
                             const bench::ProfileSamples &samples,
                             const bench::Summary &serialUs) {
  ProfileFacts facts;
  facts.configuration = std::move(configuration);
  facts.model = subject.plan.model;
  facts.threads = subject.threads;
  facts.samples = samples.replayUs.count;
  facts.replay = Quartiles::of(samples.replayUs);
  facts.serial = Quartiles::of(serialUs);
  if (samples.spanUs.count > 0)
    facts.span = Quartiles::of(samples.spanUs);
  auto medianOf = [&](auto get) {
    std::vector<double> values;
    for (const bench::Overlap &overlap : samples.overlaps)
      values.push_back(get(overlap));
    return values.empty() ? 0.0 : bench::median(std::move(values));
  };
  facts.communicationUs =
      medianOf([](const bench::Overlap &o) { return o.communicationUs; });
  facts.hiddenUs = medianOf([](const bench::Overlap &o) { return o.hiddenUs; });
  Plan measured = subject.plan;
  for (PlanStep &step : measured.steps) {
    const std::vector<double> &ofNode = samples.nodeUs[step.node.value];
    if (ofNode.empty())
      continue;
    const DagNode &node = dag.node(step.node);
    NodeProfile &each = facts.nodes.emplace_back();
    each.node = step.node.value;
    each.name = node.name;
    each.source = node.location;
    each.kind = workClass(node);
    each.devices = devicesOf(node);
    each.predictedUs = step.durationUs;
    each.measured = Quartiles::of(bench::summarize(ofNode));
    each.overlap = std::max(0.0, medianOf([&](const bench::Overlap &o) {
                              return o.share[step.node.value];
                            }));
    step.durationUs = each.measured.us;
  }
  facts.predictedUs = replayUs(subject.plan, dag, subject.threads);
  facts.recomputedUs = replayUs(measured, dag, subject.threads);
  return facts;
}

void addMeasured(ProgramFacts &program, const Dag &dag,
                 const bench::ProfileSubject &subject,
                 const bench::ProfileSamples &samples) {
  program.before = describeReplay(dag, subject.plan, samples.timeline);
  for (uint32_t id = 0; id < dag.nodes.size(); ++id)
    if (auto *call = std::get_if<KernelCall>(&dag.nodes[id].work);
        call && !samples.nodeUs[id].empty())
      program.kernels[call->kernel.value].defaultUs +=
          bench::median(samples.nodeUs[id]) *
          (dag.nodes[id].phase == Phase::Replay ? double(dag.loop.trips) : 1);
}

json toJson(const NodeProfile &node) {
  return {{"id", node.node},
          {"name", node.name},
          {"kind", toString(node.kind)},
          {"devices", node.devices},
          {"source", node.source},
          {"predicted_us", node.predictedUs},
          {"measured_us", node.measured.us},
          {"p25_us", node.measured.p25Us},
          {"p75_us", node.measured.p75Us},
          {"ratio", node.ratio()},
          {"overlap", node.overlap}};
}

static json toJson(const Quartiles &quartiles) {
  return json::array({quartiles.us, quartiles.p25Us, quartiles.p75Us});
}

static Quartiles quartilesFrom(const json &in) {
  Quartiles out{in.at(0).get<double>(), in.at(1).get<double>(),
                in.at(2).get<double>()};
  for (double us : {out.us, out.p25Us, out.p75Us})
    if (!std::isfinite(us) || us < 0)
      throw json::other_error::create(501, "no time", nullptr);
  return out;
}

static db::TuningProblem profileProblem(db::TuningProblem program) {
  program.policy += profiledSuffix;
  return program;
}

Result<void> storeProfile(const db::TuningProblem &program,
                          const ProfileFacts &facts, std::string version,
                          db::TuningStore &store) {
  if (facts.replay.us <= 0)
    return {};
  std::vector<NodeProfile> kept = facts.nodes;
  if (kept.size() > mostStoredNodes) {
    std::sort(kept.begin(), kept.end(), [](auto &x, auto &y) {
      return std::pair(-x.measured.us, x.node) <
             std::pair(-y.measured.us, y.node);
    });
    kept.resize(mostStoredNodes);
  }
  json nodes = json::array();
  for (const NodeProfile &node : kept)
    nodes.push_back({node.node, node.name, node.source, int(node.kind),
                     node.devices, node.predictedUs, toJson(node.measured),
                     node.overlap});
  db::Trial trial;
  trial.configuration = db::pairsText(facts.configuration);
  trial.medianUs = trial.meanUs = facts.replay.us;
  trial.lowUs = trial.highUs = facts.replay.us;
  trial.samples = std::max<uint64_t>(facts.samples, 1);
  trial.provenance = provenanceHere(std::move(version), facts.pinnedCpus);
  json about = json::parse(trial.provenance.environment);
  about["profile"] = {{"model", facts.model},
                      {"threads", facts.threads},
                      {"samples", facts.samples},
                      {"pinned_cpus", facts.pinnedCpus},
                      {"predicted_us", facts.predictedUs},
                      {"recomputed_us", facts.recomputedUs},
                      {"plan", facts.plan},
                      {"replay", toJson(facts.replay)},
                      {"serial", toJson(facts.serial)},
                      {"span", toJson(facts.span)},
                      {"communication_us", facts.communicationUs},
                      {"hidden_us", facts.hiddenUs},
                      {"timed_by", facts.timedBy},
                      {"nodes", std::move(nodes)}};
  if (facts.program)
    about["program"] = toJson(*facts.program);
  // Names come from the user's file and may not be UTF-8.
  trial.provenance.environment =
      about.dump(-1, ' ', false, json::error_handler_t::replace);
  return store.record(profileProblem(program), trial);
}

static std::optional<ProfileFacts> factsFrom(const db::Trial &trial) {
  auto pairs = db::parsePairs(trial.configuration);
  json about = json::parse(trial.provenance.environment, nullptr, false);
  if (!pairs || !about.is_object() || !about.contains("profile"))
    return std::nullopt;
  ProfileFacts facts;
  facts.configuration = std::move(*pairs);
  facts.timeMs = trial.provenance.timeMs;
  facts.host = trial.provenance.host;
  facts.version = trial.provenance.version;
  try {
    const json &in = about["profile"];
    in.at("model").get_to(facts.model);
    in.at("threads").get_to(facts.threads);
    in.at("samples").get_to(facts.samples);
    in.at("pinned_cpus").get_to(facts.pinnedCpus);
    in.at("predicted_us").get_to(facts.predictedUs);
    in.at("recomputed_us").get_to(facts.recomputedUs);
    facts.plan = in.value("plan", "");
    facts.replay = quartilesFrom(in.at("replay"));
    facts.serial = quartilesFrom(in.at("serial"));
    if (in.contains("span")) { // not in those of the first version
      facts.span = quartilesFrom(in["span"]);
      in.at("communication_us").get_to(facts.communicationUs);
      in.at("hidden_us").get_to(facts.hiddenUs);
      in.at("timed_by").get_to(facts.timedBy);
    }
    for (const json &from : in.at("nodes")) {
      NodeProfile &node = facts.nodes.emplace_back();
      from.at(0).get_to(node.node);
      from.at(1).get_to(node.name);
      from.at(2).get_to(node.source);
      node.kind = WorkClass(std::clamp(from.at(3).get<int>(), 0, 2));
      from.at(4).get_to(node.devices);
      from.at(5).get_to(node.predictedUs);
      node.measured = quartilesFrom(from.at(6));
      if (from.size() > 7)
        from.at(7).get_to(node.overlap);
    }
    if (auto at = about.find("program"); at != about.end())
      facts.program = factsFromJson(*at);
    if (auto at = about.find("environment"); at != about.end())
      for (auto &[name, value] : at->items())
        facts.environment.push_back({name, value.get<std::string>()});
  } catch (const json::exception &) {
    return std::nullopt; // another version's, which says something else
  }
  return facts;
}

Result<std::optional<ProfileFacts>>
readProfile(const db::TuningProblem &program, db::TuningStore &store) {
  MGPU_TRY_ASSIGN(db::Trials found, store.trials(profileProblem(program)));
  for (auto trial = found.trials.rbegin(); trial != found.trials.rend();
       ++trial)
    if (auto facts = factsFrom(*trial))
      return facts;
  return std::optional<ProfileFacts>();
}

} // namespace mgpu::tuner

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/report/ReadReport.h"

#include "tuner/record/Keys.h"
#include "tuner/report/ReportText.h"
#include "tuner/space/ProgramSpace.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>

namespace mgpu::tuner {

using nlohmann::json;

namespace {

db::TuningProblem decisionOf(db::TuningProblem problem) {
  problem.policy += decidedSuffix;
  return problem;
}

bool isProgram(const db::TuningProblem &problem) {
  return !problem.program.starts_with(kernelPrefix) &&
         (problem.policy == policyText(false) ||
          problem.policy == policyText(true));
}

json aboutOf(const db::Trial &trial) {
  json about = json::parse(trial.provenance.environment, nullptr, false);
  return about.is_object() ? about : json::object();
}

template <typename T>
T valueOr(const json &object, const char *name, T otherwise) {
  auto at = object.find(name);
  try {
    return at == object.end() ? otherwise : at->get<T>();
  } catch (const json::exception &) {
    return otherwise;
  }
}

Measured measuredOf(const db::Trial &trial) {
  return {trial.medianUs, trial.lowUs, trial.highUs, trial.samples};
}

/// The name of a path's file.
std::string fileName(const std::string &path) {
  return path.substr(path.find_last_of('/') + 1);
}

class Reader {
public:
  Reader(db::TuningStore &store, const db::TuningProblem &program)
      : store(store), decisionKey(decisionOf(program)) {
    report.problem = program;
    report.database = store.path();
  }

  Result<Report> run(const std::optional<ProgramFacts> &known) {
    MGPU_TRY_ASSIGN(db::Trials decisions, store.trials(decisionKey));
    damaged += decisions.damaged;
    for (const db::Trial &trial : decisions.trials)
      addDecision(trial);
    MGPU_TRY_ASSIGN(report.profile, readProfile(report.problem, store));
    if (!facts && report.profile)
      facts = report.profile->program;
    if (!facts)
      facts = known;
    else if (known)
      fillFrom(*known);
    describeSubject();
    MGPU_TRY(addTrials());
    if (report.trials.empty() && report.profile)
      takeProfile();
    else if (report.trials.empty())
      return fail(ErrorKind::Invalid,
                  fmt::format("'{}' has no trial of the program {}: tune it "
                              "first",
                              store.path(),
                              report.problem.key().substr(0, 12)));
    addProgress();
    addImportance();
    addKernels();
    addTimelines();
    addNotes();
    return std::move(report);
  }

private:
  void addDecision(const db::Trial &trial) {
    json about = aboutOf(trial);
    const json session = valueOr<json>(about, "session", json::object());
    auto times = decidedTimesOf(trial);
    if (!times)
      return; // another version's, which says something else
    Decision &each = report.decisions.emplace_back();
    each.timeMs = trial.provenance.timeMs;
    each.host = trial.provenance.host;
    each.version = trial.provenance.version;
    each.sentence = times->sentence;
    each.strategy = valueOr<std::string>(session, "strategy", "");
    each.seconds = valueOr(session, "seconds", 0.0);
    each.evaluations = valueOr(session, "evaluations", uint64_t(0));
    each.isComplete = valueOr(session, "complete", false);
    each.toleranceShare = valueOr(session, "tolerance_share", 0.0);
    each.isExhausted = valueOr(session, "exhausted", false);
    // The latest decision holds: it met the ones before it.
    report.isDecided = true;
    report.before = times->before;
    report.after = times->after;
    report.metBy = times->change;
    report.warnings = times->warnings;
    report.verdict = times->verdict;
    report.spaceSize = valueOr(session, "space", 0.0);
    report.parts.clear();
    for (const json &part : valueOr(session, "parts", json::array()))
      if (part.is_object())
        report.parts.push_back({valueOr<std::string>(part, "name", ""),
                                valueOr(part, "points", 0.0),
                                valueOr(part, "tried", uint64_t(0))});
    report.configuration =
        db::parsePairs(trial.configuration).value_or(db::Pairs());
    if (auto at = about.find("program"); at != about.end())
      facts = factsFromJson(*at);
    report.environment.clear();
    if (const json values = valueOr<json>(about, "environment", json());
        values.is_object())
      for (auto &[name, value] : values.items())
        if (value.is_string())
          report.environment.push_back({name, value.get<std::string>()});
  }

  /// Fills in a program that nothing was tried of.
  void takeProfile() {
    const Quartiles &replay = report.profile->replay;
    report.before = {replay.us, replay.us, replay.us, report.profile->samples};
    report.after = report.before;
    report.configuration = report.profile->configuration;
    report.environment = report.profile->environment;
  }

  /// The program is at hand; what was measured of it is in the database.
  void fillFrom(const ProgramFacts &known) {
    if (!facts->before || facts->before->left > 0)
      facts->before = known.before;
  }

  void describeSubject() {
    report.title = report.problem.key().substr(0, 12);
    if (!facts)
      return;
    report.subject = facts->subject;
    report.devices = facts->devices;
    report.loopTrips = facts->loopTrips;
    report.peaks = facts->peaks;
    if (!facts->subject.file.empty())
      report.title = fileName(facts->subject.file);
  }

  Result<void> addTrials() {
    MGPU_TRY_ASSIGN(db::Trials ofProgram, store.trials(report.problem));
    damaged += ofProgram.damaged;
    // The default is what was measured first, at the start of a session.
    if (!ofProgram.trials.empty() && report.before.us == 0)
      report.before = measuredOf(ofProgram.trials.front());
    const std::string defaultText =
        ofProgram.trials.empty() ? "" : ofProgram.trials.front().configuration;
    for (db::Trial &trial : ofProgram.trials) {
      ReportTrial &each = report.trials.emplace_back();
      if (trial.status == db::TrialStatus::Ok) {
        each.relative = trial.medianUs / std::max(report.before.us, 1e-12);
        report.best.push_back(trial);
      }
      each.trial = std::move(trial);
    }
    std::sort(report.best.begin(), report.best.end(),
              [](const db::Trial &a, const db::Trial &b) {
                return a.medianUs < b.medianUs;
              });
    if (!report.isDecided)
      report.after = report.before;
    report.isDefault =
        !report.isDecided || db::pairsText(report.configuration) == defaultText;
    return addKernelTrials();
  }

  Result<void> addKernelTrials() {
    if (!facts || facts->kernels.empty())
      return {};
    std::map<std::string, db::TuningProblem> byKey;
    MGPU_TRY_ASSIGN(auto problems, store.problems());
    for (db::TuningProblem &problem : problems)
      if (problem.program.starts_with(kernelPrefix))
        byKey.emplace(problem.key(), std::move(problem));
    for (size_t k = 0; k < facts->kernels.size(); ++k) {
      auto at = byKey.find(facts->kernels[k].key);
      if (at == byKey.end())
        continue;
      MGPU_TRY_ASSIGN(db::Trials trials, store.trials(at->second));
      damaged += trials.damaged;
      // The first is the default, as it was when the search began.
      const double defaultUs =
          trials.trials.empty() ? 0 : trials.trials.front().medianUs;
      for (db::Trial &trial : trials.trials) {
        ReportTrial &each = report.trials.emplace_back();
        each.kernel = int32_t(k);
        if (trial.status == db::TrialStatus::Ok && defaultUs > 0)
          each.relative = trial.medianUs / defaultUs;
        each.trial = std::move(trial);
      }
    }
    return {};
  }

  void addProgress() {
    // Trials of one time keep the order in which they were recorded.
    std::vector<std::pair<int64_t, size_t>> order;
    for (size_t k = 0; k < report.trials.size(); ++k)
      order.push_back({report.trials[k].trial.provenance.timeMs, k});
    std::sort(order.begin(), order.end());
    std::vector<ReportTrial> sorted;
    for (auto [timeMs, k] : order)
      sorted.push_back(std::move(report.trials[k]));
    report.trials = std::move(sorted);
    double spent = 0;
    for (ReportTrial &each : report.trials) {
      spent += each.trial.seconds;
      each.spentSeconds = spent;
      report.failed += each.trial.status != db::TrialStatus::Ok;
    }
    // `tune` counts neither the default nor what a decision measures again.
    if (!report.decisions.empty())
      report.tried = report.decisions.back().evaluations;
    if (report.tried == 0) // by an older version, or undecided
      report.tried = report.trials.size();
  }

  void addImportance() {
    const size_t numKernels = facts ? facts->kernels.size() : 0;
    std::vector<std::vector<ImportanceSample>> samples(numKernels + 1);
    for (const ReportTrial &each : report.trials) {
      auto pairs = db::parsePairs(each.trial.configuration);
      if (pairs && each.trial.status == db::TrialStatus::Ok)
        samples[size_t(each.kernel + 1)].push_back(
            {std::move(*pairs), each.trial.medianUs});
    }
    for (size_t k = 0; k < samples.size(); ++k) {
      auto parameters = importanceOf(samples[k]);
      if (!parameters.empty())
        report.importance.push_back(
            {k == 0 ? "program" : facts->kernels[k - 1].name, samples[k].size(),
             std::move(parameters)});
    }
  }

  void addKernels() {
    if (!facts)
      return;
    for (size_t k = 0; k < facts->kernels.size(); ++k) {
      ReportKernel &each = report.kernels.emplace_back();
      each.facts = facts->kernels[k];
      for (const ReportTrial &trial : report.trials)
        if (trial.kernel == int32_t(k)) {
          ++each.tried;
          each.failed += trial.trial.status != db::TrialStatus::Ok;
        }
      if (auto at =
              report.configuration.find(kernelKeyPrefix + each.facts.name);
          at != report.configuration.end())
        each.configuration = at->second;
      if (!report.peaks.isKnown())
        continue;
      const double byMemory =
          each.facts.bytes / report.peaks.bytesPerUs(each.facts.bytesTouched);
      const double byFlops = each.facts.flops / report.peaks.flopsPerUs;
      each.boundUs = std::max(byMemory, byFlops);
      each.isMemoryBound = byMemory >= byFlops;
    }
  }

  static std::optional<ReportTimeline>
  timelineOf(const std::optional<Timeline> &from) {
    if (!from || from->steps.empty())
      return std::nullopt;
    ReportTimeline out{*from, 0, exposedStretches(*from)};
    for (const TimelineStep &step : from->steps)
      out.lengthUs = std::max(out.lengthUs, step.endUs);
    return out;
  }

  void addTimelines() {
    if (!facts)
      return;
    report.timelineBefore = timelineOf(facts->before);
    report.timelineAfter = timelineOf(facts->after);
  }

  void addNotes() {
    auto note = [&](std::string text) {
      report.notes.push_back(std::move(text));
    };
    if (!report.wasTuned())
      note(fmt::format("It was profiled and not tuned: `{}` looks for "
                       "something faster.",
                       commandText(report, "tune")));
    else if (!report.isDecided)
      note("No session of this program came to its end: there is no tuned "
           "configuration yet. Tuning it again goes on where the last one "
           "stopped.");
    for (const std::string &warning : report.warnings)
      note(fmt::format("While it was decided, {}.", warning));
    if (!facts)
      note("The database does not say what the program is: give its file.");
    if (facts && !report.timelineBefore)
      note("No timeline was stored.");
    for (const auto *timeline : {&report.timelineBefore, &report.timelineAfter})
      if (*timeline && (*timeline)->timeline.left > 0)
        note(fmt::format("The timeline shows the first {} steps; {} more are "
                         "left out.",
                         (*timeline)->timeline.steps.size(),
                         (*timeline)->timeline.left));
    if (facts && !report.peaks.isKnown())
      note("The peak of the machine was not measured: no share of it is "
           "given.");
    if (report.wasTuned() && report.importance.empty())
      note(fmt::format("Too few trials ({} are needed of one thing) to say "
                       "which parameters matter.",
                       fewestForImportance));
    if (damaged > 0)
      note(fmt::format("{} damaged rows of the database were left out.",
                       damaged));
  }

  db::TuningStore &store;
  db::TuningProblem decisionKey;
  std::optional<ProgramFacts> facts;
  uint64_t damaged = 0;
  Report report;
};

} // namespace

Result<std::vector<TunedProgram>> tunedPrograms(db::TuningStore &store) {
  std::vector<TunedProgram> found;
  MGPU_TRY_ASSIGN(auto problems, store.problems());
  std::set<std::string> seen;
  for (db::TuningProblem &problem : problems) {
    if (problem.policy.ends_with(profiledSuffix))
      problem.policy.resize(problem.policy.size() -
                            std::strlen(profiledSuffix));
    if (!isProgram(problem) || !seen.insert(problem.key()).second)
      continue;
    TunedProgram each;
    for (const char *suffix : {"", decidedSuffix, profiledSuffix}) {
      db::TuningProblem about = problem;
      about.policy += suffix;
      MGPU_TRY_ASSIGN(db::Trials trials, store.trials(about));
      for (const db::Trial &trial : trials.trials) {
        each.timeMs = std::max(each.timeMs, trial.provenance.timeMs);
        json program = valueOr<json>(aboutOf(trial), "program", json::object());
        if (auto at = program.find("file");
            at != program.end() && at->is_string())
          each.name = fileName(at->get<std::string>());
        each.entry = valueOr(program, "entry", each.entry);
        if (auto times = decidedTimesOf(trial)) {
          each.times = std::move(times);
          each.configuration = trial.configuration;
        }
      }
    }
    each.problem = std::move(problem);
    found.push_back(std::move(each));
  }
  std::sort(found.begin(), found.end(),
            [](const TunedProgram &a, const TunedProgram &b) {
              return a.timeMs != b.timeMs ? a.timeMs > b.timeMs
                                          : a.problem.text() < b.problem.text();
            });
  return found;
}

Result<Report> readReport(db::TuningStore &store,
                          const db::TuningProblem &program,
                          const std::optional<ProgramFacts> &known) {
  return Reader(store, program).run(known);
}

} // namespace mgpu::tuner

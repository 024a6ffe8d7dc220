// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/program/VariantRecord.h"

#include "db/FileSystem.h"
#include "device/cuda/CudaTarget.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unistd.h>

namespace mgpu::pipeline {

/// Stands between a variant's record and mgpu's version in the program of a
/// TuningProblem.
static constexpr const char *versionMark = ", mgpu ";

static db::TuningProblem problemOf(const GpuIdentity &gpu, Variant variant) {
  db::TuningProblem problem;
  problem.program =
      factsOf(variant).record + std::string(versionMark) + MGPU_VERSION;
  problem.device = gpu.name;
  problem.architecture = gpu.arch;
  problem.driver = "CUDA driver " + gpu.driver;
  problem.policy = "the bits of the host";
  return problem;
}

/// The configurations of such a problem: with the variant, and without.
static std::string configurationOf(Variant variant) {
  return db::pairsText({{"form", factsOf(variant).name}});
}
static std::string plainConfiguration() {
  return db::pairsText({{"form", "without"}});
}

Result<void> recordEvidence(db::TuningStore &store, const GpuIdentity &gpu,
                            Variant variant, const Evidence &evidence) {
  std::vector<db::Trial> trials;
  auto add = [&](std::string configuration, double us) {
    db::Trial &trial = trials.emplace_back();
    trial.configuration = std::move(configuration);
    trial.provenance.version = MGPU_VERSION;
    trial.medianUs = trial.meanUs = trial.lowUs = trial.highUs = us;
    trial.samples = us > 0;
  };
  if (evidence.verdict == Evidence::Verdict::Failed) {
    add(configurationOf(variant), 0);
    trials.back().status = db::TrialStatus::Wrong;
    trials.back().sentence = evidence.fault;
  } else {
    add(configurationOf(variant), evidence.us);
    if (evidence.withoutUs > 0)
      add(plainConfiguration(), evidence.withoutUs);
  }
  return store.record(problemOf(gpu, variant), trials);
}

/// The newest trials count, but for a failure, which stays, also where its
/// trial is damaged.
static Result<Evidence> readEvidence(db::TuningStore &store,
                                     const db::TuningProblem &problem,
                                     Variant variant) {
  MGPU_TRY_ASSIGN(const db::Trials stored, store.trials(problem));
  std::multimap<int64_t, const db::Trial *> byTime; // imported ones are late
  for (const db::Trial &trial : stored.trials)
    byTime.emplace(trial.provenance.timeMs, &trial);
  Evidence evidence;
  for (const auto &[time, each] : byTime) {
    const db::Trial &trial = *each;
    if (trial.status != db::TrialStatus::Ok) {
      evidence.verdict = Evidence::Verdict::Failed;
      evidence.fault = trial.sentence;
    } else if (trial.configuration == plainConfiguration()) {
      evidence.withoutUs = trial.medianUs;
    } else if (trial.configuration == configurationOf(variant)) {
      evidence.us = trial.medianUs;
      evidence.withoutUs = 0; // of the trial before it
      if (evidence.verdict == Evidence::Verdict::NotRun)
        evidence.verdict = Evidence::Verdict::Passed;
    }
  }
  MGPU_TRY_ASSIGN(const bool failed,
                  store.isQuarantined(problem, configurationOf(variant)));
  if (failed && evidence.verdict != Evidence::Verdict::Failed) {
    evidence.verdict = Evidence::Verdict::Failed;
    evidence.fault = "what went wrong is not to be read any more";
  }
  return evidence;
}

Result<Evidence> evidenceOf(db::TuningStore &store, const GpuIdentity &gpu,
                            Variant variant) {
  return readEvidence(store, problemOf(gpu, variant), variant);
}

Result<std::vector<StoredEvidence>> allEvidence(db::TuningStore &store,
                                                Variant variant) {
  const std::string head = factsOf(variant).record + std::string(versionMark);
  std::vector<StoredEvidence> all;
  MGPU_TRY_ASSIGN(const auto problems, store.problems());
  for (const db::TuningProblem &problem : problems) {
    if (!problem.program.starts_with(head))
      continue;
    MGPU_TRY_ASSIGN(Evidence evidence, readEvidence(store, problem, variant));
    all.push_back({problem.device, problem.driver,
                   problem.program.substr(head.size()), std::move(evidence)});
  }
  return all;
}

/// The database, where it has evidence of any variant. Whoever needs the file
/// says what is wrong with it.
static std::optional<db::TuningStore>
storeWithEvidence(const LoadOptions &options) {
  auto path = db::databasePath(options.database);
  if (!path || access(path->c_str(), R_OK) != 0)
    return std::nullopt;
  db::StoreOptions storing;
  storing.database.access = db::Access::ReadOnly;
  auto store = db::TuningStore::open(*path, storing);
  if (!store)
    return std::nullopt;
  for (const VariantFacts &each : variantTable)
    if (auto known = allEvidence(*store, each.variant);
        known && !known->empty())
      return std::move(*store);
  return std::nullopt;
}

Variants withEvidence(const LoadOptions &options,
                      const IdentifyGpus &identify) {
  Variants variants = options.variants;
  if (!device::isCudaTarget(options.target) || !options.usesRecord ||
      std::ranges::find(variants.words, Variants::Word::Auto) ==
          variants.words.end())
    return variants;
  auto store = storeWithEvidence(options);
  if (!store)
    return variants;
  auto gpus = identify(options.target);
  if (!gpus)
    return variants;
  for (const VariantFacts &each : variantTable)
    variants.byDefault[size_t(each.variant)] =
        std::ranges::all_of(*gpus, [&](const GpuIdentity &gpu) {
          auto evidence = evidenceOf(*store, gpu, each.variant);
          return isDefault(each.rule, evidence ? *evidence : Evidence());
        });
  return variants;
}

} // namespace mgpu::pipeline

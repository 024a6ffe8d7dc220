// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_RECORD_PROFILEFACTS_H
#define MGPU_TUNER_RECORD_PROFILEFACTS_H

// A profile for people: the predicted and the measured time of each node. It is
// stored beside the program's trials, so that a report needs neither the
// program nor its compiler. Times are microseconds.

#include "bench/profile/Profile.h"
#include "db/TuningStore.h"
#include "tuner/record/ProgramFacts.h"

#include <nlohmann/json_fwd.hpp>

namespace mgpu::tuner {

/// The median and the quartiles of samples.
struct Quartiles {
  double us = 0, p25Us = 0, p75Us = 0;

  static Quartiles of(const bench::Summary &us);
  bool operator==(const Quartiles &) const = default;
};

struct NodeProfile {
  uint32_t node = 0; ///< NodeId
  std::string name, source;
  planner::WorkClass kind = planner::WorkClass::Kernel;
  std::string devices; ///< "0,1"; "host"
  double predictedUs = 0;
  Quartiles measured;
  double overlap = 0; ///< Overlap::share, the median

  /// Measured over predicted; 0 where nothing was predicted.
  double ratio() const {
    return predictedUs > 0 ? measured.us / predictedUs : 0;
  }
  bool operator==(const NodeProfile &) const = default;
};

struct ProfileFacts {
  db::Pairs configuration; ///< as toPairs() has it
  std::string model;       ///< what predicted, the nodes too
  uint32_t threads = 1;    ///< 0: a GPU
  uint64_t samples = 0;    ///< whole replays
  double predictedUs = 0;  ///< a replay, by the model
  double recomputedUs = 0; ///< a replay, from the nodes measured
  /// planner::planLine() of the plan that is made by these times; "" of GPUs.
  std::string plan;
  Quartiles replay, serial; ///< measured; a serial plan on one thread
  Quartiles span;           ///< a replay, by the device; 0: unknown
  /// The time of copies and collectives, and how long of it a kernel ran beside
  /// them; medians.
  double communicationUs = 0, hiddenUs = 0;
  std::string timedBy;            ///< Profile::timedBy
  std::vector<NodeProfile> nodes; ///< in plan order; those that a replay runs

  std::string pinnedCpus = "none"; ///< as bench::cpusText() has it

  /// Present if the program was not tuned, since nothing else then describes
  /// it. Its timeline and its kernels' times are those measured.
  std::optional<ProgramFacts> program;

  // Where and when; set by readProfile().
  std::vector<std::pair<std::string, std::string>> environment;
  int64_t timeMs = 0;
  std::string host, version;

  bool operator==(const ProfileFacts &) const = default;
};

/// Describes what was measured of `subject`, whose plan has the predictions.
ProfileFacts describeProfile(const planner::Dag &dag, db::Pairs configuration,
                             const bench::ProfileSubject &subject,
                             const bench::ProfileSamples &samples,
                             const bench::Summary &serialUs);

/// Adds to `program`, which describeProgram() made, what `subject`, the
/// default, took. `dag` is the one that its plan is for.
void addMeasured(ProgramFacts &program, const planner::Dag &dag,
                 const bench::ProfileSubject &subject,
                 const bench::ProfileSamples &samples);

nlohmann::json toJson(const NodeProfile &node);

/// `program` is programProblem() of the program as it was before transforms. If
/// there are more than some thousand nodes, those that took longest are kept.
Result<void> storeProfile(const db::TuningProblem &program,
                          const ProfileFacts &facts, std::string version,
                          db::TuningStore &store);
/// The newest that can be read; none where there is none.
Result<std::optional<ProfileFacts>>
readProfile(const db::TuningProblem &program, db::TuningStore &store);

} // namespace mgpu::tuner

#endif // MGPU_TUNER_RECORD_PROFILEFACTS_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_RECORD_MEASUREDTIMES_H
#define MGPU_TUNER_RECORD_MEASUREDTIMES_H

// Times of nodes as `profile` measured them, stored by what a node does, and
// found again by exactly that.

#include "bench/measure/Summary.h"
#include "db/Trial.h"
#include "db/TuningStore.h"
#include "planner/cost/TargetMachine.h"
#include "tuner/record/Keys.h"
#include "tuner/space/ProgramSpace.h"

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace mgpu::tuner {

/// The work of node `id` and its machine, whatever program it is in. For a
/// kernel that is its code, grid, part, scalars and how it is built; for a copy
/// the shapes of its boxes and the memories; for a collective its kind, type,
/// ranks and shapes. None for nodes known only by their cost.
std::optional<db::TuningProblem> nodeProblem(const KeyInput &input,
                                             const ProgramConfig &config,
                                             planner::NodeId id);

/// The work of node `id`, within one program and what transforms make of it:
/// nodes with equal texts do equal work.
std::string workText(const planner::Dag &dag, planner::NodeId id);

using planner::NodeTimes;

/// The newest measurement of each node of the program in `store`; on one
/// machine, equal nodes have equal times.
Result<NodeTimes> readNodeTimes(const KeyInput &input,
                                const ProgramConfig &config,
                                db::TuningStore &store);

/// Stores the median of `samples` for all nodes that do the same thing. Samples
/// by NodeId, microseconds; empty for nodes that are not to be stored.
Result<void> storeNodeTimes(const KeyInput &input, const ProgramConfig &config,
                            const std::vector<std::vector<double>> &samples,
                            db::TuningStore &store);

/// The number of threads chosen for the default configuration, and what replays
/// on it took.
Result<void> storeThreads(const KeyInput &input, uint32_t threads,
                          const bench::Summary &us, db::TuningStore &store);
/// The number chosen last; none where none was.
Result<std::optional<uint32_t>> readThreads(const KeyInput &input,
                                            db::TuningStore &store);

// The times of the last meeting of winner and default. They are stored once,
// with the decision, and tune, report, compare and `db show` print them: no
// other pair of numbers is ever made of it.

/// Microseconds, with a 95 % interval.
struct Measured {
  double us = 0, lowUs = 0, highUs = 0;
  uint64_t samples = 0;

  bool operator==(const Measured &) const = default;
};
Measured measuredOf(const bench::Summary &seconds);

struct DecidedTimes {
  /// Medians of the samples that were taken in turn for this alone; both are
  /// the default's where it was kept.
  Measured before, after;
  /// The time of what met the default over the default's, less one, by pairs.
  /// None where nothing met it.
  std::optional<bench::Interval> change;
  uint64_t pairs = 0, processes = 0;
  std::string verdict;      ///< FAST, SLOW, SAME, AMBG; empty: nothing met
  std::string sentence;     ///< "A beats B by ..."
  bool isUndecided = false; ///< time was up first
  std::vector<std::string> warnings; ///< about the machine

  bool operator==(const DecidedTimes &other) const {
    return before == other.before && after == other.after &&
           sentence == other.sentence;
  }
};

nlohmann::json toJson(const DecidedTimes &times);
/// None where the text is not of one.
std::optional<DecidedTimes> decidedTimesFromJson(const nlohmann::json &from);
/// The times of the trial that holds a decision; none of any other trial.
std::optional<DecidedTimes> decidedTimesOf(const db::Trial &trial);

/// "1.118 us [1.102 us, 1.130 us]"; without an interval, the time alone.
std::string measuredText(const Measured &measured);
/// The lines that tell of a decision: "default  TIME", "tuned    TIME:
/// SENTENCE", and a line for each warning.
std::string decidedText(const DecidedTimes &times);

// Predicts configurations before they are measured: where a search begins, and
// nothing more.

/// Times of the nodes of a program, and of what transforms make of it, from
/// times of some of its nodes. Work that was timed takes what it took. Other
/// work takes what `model` says, times a ratio: what timed work of the same
/// kernel, else of the same kind, took over what the model says of it. So what
/// a transform made new is not judged by another measure than the rest.
class PriorTimes final : public planner::LatencyEstimator {
public:
  PriorTimes(const planner::Dag &program, const NodeTimes &timed,
             const planner::LatencyEstimator &model);
  double durationUs(const planner::Dag &dag,
                    planner::NodeId node) const override;
  std::string name() const override { return "priors; " + model.name(); }

private:
  struct Ratio {
    double measuredUs = 0, modelUs = 0;
    bool isKnown() const { return measuredUs > 0 && modelUs > 0; }
    double operator()() const { return measuredUs / modelUs; }
  };

  const planner::LatencyEstimator &model;
  std::map<std::string, double> known; ///< microseconds by workText()
  std::vector<Ratio> kernels;          ///< by KernelId
  std::array<Ratio, 3> kinds;          ///< by WorkClass
};

/// Microseconds of a replay on the host under `times`
/// (planner::hostReplayUs()); `machine` decides the plan. `dag` is as the
/// configuration's transforms leave the program.
Result<double> predictedUs(const planner::Dag &dag, const ProgramConfig &config,
                           const planner::Machine &machine,
                           const planner::LatencyEstimator &times);

} // namespace mgpu::tuner

#endif // MGPU_TUNER_RECORD_MEASUREDTIMES_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_RECORD_PROGRAMFACTS_H
#define MGPU_TUNER_RECORD_PROGRAMFACTS_H

// A session's facts about its program, for people: names, kernels, what each
// step took. It is stored beside the decision, so that a report needs neither
// the program nor its compiler.

#include "bench/measure/Peaks.h"
#include "capture/replay/Replayer.h"
#include "planner/dag/Dag.h"
#include "planner/plan/Plan.h"

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mgpu::tuner {

/// The program as the user named it.
struct SubjectName {
  std::string file, entry;
  std::map<std::string, std::string> arguments; ///< --arg K=V

  bool operator==(const SubjectName &) const = default;
};

struct KernelFacts {
  std::string name, source; ///< "file:line:column"
  std::string key;          ///< its problem's key in the database
  /// In a replay. If a loop is rolled, its trips count, without what is around
  /// them.
  uint64_t launches = 0;
  double flops = 0;        ///< of all launches
  double bytes = 0;        ///< read and written by all launches, by their boxes
  double bytesTouched = 0; ///< by the launch that touches most
  /// Sum over the launches of a replay; 0: not known.
  double defaultUs = 0, tunedUs = 0;

  bool operator==(const KernelFacts &) const = default;
};

struct TimelineStep {
  uint32_t node = 0;
  std::string name, source;
  planner::WorkClass kind = planner::WorkClass::Kernel;
  std::vector<planner::PlanStream> streams;
  double startUs = 0, endUs = 0;
  double plannedStartUs = 0, plannedEndUs = 0; ///< under the plan's model

  bool operator==(const TimelineStep &) const = default;
};

/// A replay, or the first trip of a rolled loop.
struct Timeline {
  bool isMeasured = false; ///< else predicted, under `model`
  std::string scheduler, model;
  std::string plan; ///< planner::Plan::verdictLine(), or "" of older versions
  /// The bound of a replay under the model; 0: not known, or the plan has more
  /// phases than the replay.
  double boundUs = 0;
  std::vector<TimelineStep> steps; ///< in plan order
  bool hasPlanned =
      false;         ///< the steps have planned times; not of old versions
  uint64_t left = 0; ///< steps that are not listed, as there are too many

  bool operator==(const Timeline &) const = default;
};

struct ProgramFacts {
  SubjectName subject;
  uint32_t devices = 0;
  uint64_t loopTrips = 1;
  std::vector<KernelFacts> kernels; ///< by KernelId
  std::optional<Timeline> before;   ///< the default's
  std::optional<Timeline> after;    ///< what was decided, if it is another
  bench::Peaks peaks;               ///< those of the machine that measured

  bool operator==(const ProgramFacts &) const = default;
};

/// Everything but what is measured.
ProgramFacts describeProgram(const planner::Dag &dag, SubjectName subject);

/// The steps of the replay phase; at the times of `spans` where there are any,
/// else those predicted. `spans` of nodes that the program does not have are
/// left out.
Timeline describeReplay(const planner::Dag &dag, const planner::Plan &plan,
                        std::span<const capture::NodeSpan> spans);

nlohmann::json toJson(const ProgramFacts &facts);
/// None where the text is of another form, as another version writes it.
std::optional<ProgramFacts> factsFromJson(const nlohmann::json &json);

} // namespace mgpu::tuner

#endif // MGPU_TUNER_RECORD_PROGRAMFACTS_H

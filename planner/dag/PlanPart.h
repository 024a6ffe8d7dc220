// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_DAG_PLANPART_H
#define MGPU_PLANNER_DAG_PLANPART_H

// The parts of a program's run that are planned, and told, apart.

#include "planner/dag/Dag.h"

namespace mgpu::planner {

/// Each part is planned by itself, and its times count from its own begin. Load
/// and Fetch run once, before and after the replays; the other phases make up a
/// replay.
enum class PlanPart : uint8_t { Load, Replay, Fetch };
inline constexpr std::array allPlanParts = {PlanPart::Load, PlanPart::Replay,
                                            PlanPart::Fetch};

inline PlanPart partOf(Phase phase) {
  return phase == Phase::Load    ? PlanPart::Load
         : phase == Phase::Fetch ? PlanPart::Fetch
                                 : PlanPart::Replay;
}

/// "load", "replay", "fetch".
inline std::string_view toString(PlanPart part) {
  return toString(part == PlanPart::Load    ? Phase::Load
                  : part == PlanPart::Fetch ? Phase::Fetch
                                            : Phase::Replay);
}

/// How often a replay runs a phase: the trips of a rolled loop, once each of
/// the others, and never Load and Fetch.
inline double timesInReplay(const Dag &dag, Phase phase) {
  return partOf(phase) != PlanPart::Replay ? 0
         : phase == Phase::Replay          ? double(dag.loop.trips)
                                           : 1;
}

/// Lengths of the phases, by Phase, in microseconds.
using PhaseTimes = std::array<double, allPhases.size()>;

/// The length of a part: of the replay with all trips of a rolled loop.
inline double partUs(const PhaseTimes &times, const Dag &dag, PlanPart part) {
  double us = 0;
  for (Phase phase : allPhases)
    if (partOf(phase) == part)
      us += times[size_t(phase)] *
            (part == PlanPart::Replay ? timesInReplay(dag, phase) : 1);
  return us;
}

} // namespace mgpu::planner

#endif // MGPU_PLANNER_DAG_PLANPART_H

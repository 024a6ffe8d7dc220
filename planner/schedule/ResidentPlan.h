// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_RESIDENTPLAN_H
#define MGPU_PLANNER_SCHEDULE_RESIDENTPLAN_H

// A resident argument never makes a replay longer: the plan of the program
// without resident arguments, less their copies, is a candidate for its plan.

#include "planner/cost/LatencyEstimator.h"
#include "planner/plan/Plan.h"

#include <optional>

namespace mgpu::planner {

/// The program as it is where none of its arguments is resident: their copies
/// belong to each replay. None where it has no such copies.
std::optional<Dag> withoutResidents(const Dag &dag);

/// Microseconds that no replay of withoutResidents() can beat, whatever
/// transforms make of it: a device's uploads of arguments that are read there,
/// each once.
double leastUploadUs(const Dag &dag, const LatencyEstimator &latency);

/// `other`, a plan of withoutResidents(`dag`), for `dag`: the copies of
/// resident arguments go to their phases, and all else keeps its order and
/// streams, so that no step of a replay starts later. `made` is the DAG that
/// transforms left of the other one, whose nodes get the phases of those of
/// `dag` of their names. None where it cannot be made so. With its bound; not
/// verified.
std::optional<Plan> planApart(const Plan &other, Dag &made, const Dag &dag);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_RESIDENTPLAN_H

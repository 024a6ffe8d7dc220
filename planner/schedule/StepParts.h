// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_STEPPARTS_H
#define MGPU_PLANNER_SCHEDULE_STEPPARTS_H

// Says of what a predicted replay is made, and how sure its time is.

#include "planner/cost/TargetMachine.h"
#include "planner/plan/Plan.h"

namespace mgpu::planner {

/// Lines for people, of the device that works longest: its kernels by what
/// bounds them, with their share of the roofline of the data sheet (bytes and
/// operations at the rates of the topology, over the time); collectives by how
/// they are done; copies; what of the kernels' time is launches and first
/// loads; when nothing runs; and the host's part. Then the makespan with all
/// rates of the machine at either end of their ranges, where one is a range.
/// `plan` must have passed verify(); the machine is not the host.
std::string stepPartsText(const Plan &plan, const Dag &dag,
                          const Machine &machine);

/// The makespan of the steps in the plan's order with the times of `machine`,
/// microseconds, with contention.
double retimedUs(const Plan &plan, const Dag &dag, const Machine &machine);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_STEPPARTS_H

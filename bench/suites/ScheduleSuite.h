// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_BENCH_SUITES_SCHEDULESUITE_H
#define MGPU_BENCH_SUITES_SCHEDULESUITE_H

// The runs of bench-schedule. Each prints to stdout and returns the exit code.

#include "planner/schedule/exact/Budget.h"
#include "support/Result.h"

#include <string>

namespace mgpu::bench {

struct CommonOptions {
  double seconds = 0;
  uint64_t seed = 1;
  bool json = false;
  planner::exact::ClockKind clock = planner::exact::ClockKind::Wall;
};

struct DagOptions {
  std::string file, target, memory, planOut, dagOut, model = "frozen";
  std::string transforms = "none"; ///< as mgpu-tune's
  double scaleComm = 1;
};

/// Plans a DAG under frozen model F (FrozenProblem.h) within the target's
/// memory or the one given. JSON: `first_plan_seconds` (from the DAG in memory
/// to a plan with arena, verified), `load_seconds`, `makespan_us`,
/// `lower_bound_us` (proven by a certificate that was checked) and `bound_by`,
/// `ratio`, `hidden_share` (null when there is nothing to hide),
/// `peak_memory_bytes` (the model's), `arena_bytes` (of the layout, resident
/// bytes included), `memory_limit_bytes`, `kernels_us`, `collectives_us`,
/// `schedules`, `verified`, `transforms` (what each of them gained). After a
/// transform all figures, and what is written, are of the DAG as it was left,
/// of `nodes` nodes instead of `source_nodes`; `dagOut` gets it (dagcheck.py
/// checks the plan against that). A DAG that cannot fit is an error that says
/// why, with the proof where there is one.
Result<int> runDag(const DagOptions &options, const CommonOptions &common);

} // namespace mgpu::bench

#endif // MGPU_BENCH_SUITES_SCHEDULESUITE_H

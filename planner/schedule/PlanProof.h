// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_PLANPROOF_H
#define MGPU_PLANNER_SCHEDULE_PLANPROOF_H

// Proves a plan's bound from the plan's own durations: so a plan and a
// certificate, as files, are enough to check it.

#include "planner/certificate/Certificate.h"
#include "planner/plan/Plan.h"
#include "planner/schedule/bound/MakespanBound.h"

namespace mgpu::planner {

/// The problems that a plan is a schedule of, one for each phase that has
/// nodes: frozen model F of a DAG that is spmd, else the planning model of
/// programs. `dag` is as the plan's transforms leave it.
Result<std::vector<PhaseProblem>> problemsOf(const Plan &plan, const Dag &dag);

/// The proof of a plan's bound. Where a search found it, that is made again for
/// some 10^5 branches, from the plan's own times, so that its decisions can be
/// written down; what takes longer is left without a witness, and all of it
/// without `bySearch`.
Result<PlanBound> proofOf(const Plan &plan, const Dag &dag,
                          bool bySearch = true);

/// Whether a proof rests on a search.
bool restsOnSearch(std::span<const Certificate> certificates);

/// Checks, without a search, that the plan keeps to the memory it says, that
/// its times are a schedule of its problems that ends when it says, and that
/// the certificates prove a bound of them, which is returned. The plan has
/// passed verify(). A plan whose bound a search found may come with a proof
/// that has no search: then only what that proves is.
Result<double> checkProof(const Plan &plan, const Dag &dag,
                          std::span<const Certificate> certificates);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_PLANPROOF_H

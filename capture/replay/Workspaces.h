// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_REPLAY_WORKSPACES_H
#define MGPU_CAPTURE_REPLAY_WORKSPACES_H

// The memory that compiled kernels need beside their arguments. A program whose
// kernels need some is not run before it is a part of the plan: the target
// refuses the launches.

#include "planner/plan/Plan.h"

#include <cstddef>
#include <memory>
#include <span>

namespace mgpu::capture {

/// planner::addWorkspaces() for `kernels`, by KernelId, as Driver::loadKernel
/// takes them. To be called once for a plan.
void addWorkspaces(planner::Dag &dag, planner::Plan &plan,
                   std::span<const std::vector<std::byte>> kernels);
/// Adds them to a DAG that others may hold: it is copied if it has to change.
void addWorkspaces(std::shared_ptr<const planner::Dag> &dag,
                   planner::Plan &plan,
                   std::span<const std::vector<std::byte>> kernels);

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_REPLAY_WORKSPACES_H

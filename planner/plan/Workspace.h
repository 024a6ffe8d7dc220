// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_PLAN_WORKSPACE_H
#define MGPU_PLANNER_PLAN_WORKSPACE_H

// Memory that a kernel's calls need beside their arguments, as a part of the
// plan.

#include "planner/plan/Plan.h"

#include <span>

namespace mgpu::planner {

/// `bytes`, by KernelId, is what a call of the kernel needs; 0: nothing. Each
/// stream gets as much as the largest of its calls, behind the plan's arena, as
/// a Temporary buffer that its calls write and have as one more argument: they
/// follow each other, so they may share it. The plan stays safe, as verify()
/// can prove, and what it says of `dag` holds.
void addWorkspaces(Dag &dag, Plan &plan, std::span<const uint64_t> bytes);

/// The most workspace that a device needs under any plan, where each call of a
/// kernel that `isUser` marks needs `bytes`.
uint64_t mostWorkspace(const Dag &dag, const std::vector<bool> &isUser,
                       uint32_t streamsPerDevice, uint64_t bytes);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_PLAN_WORKSPACE_H

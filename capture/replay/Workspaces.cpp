// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/replay/Workspaces.h"

#include "kernels/abi/KernelImage.h"
#include "planner/plan/Workspace.h"

#include <algorithm>
#include <iterator>

namespace mgpu::capture {

void addWorkspaces(planner::Dag &dag, planner::Plan &plan,
                   std::span<const std::vector<std::byte>> kernels) {
  std::vector<uint64_t> bytes;
  std::ranges::transform(kernels, std::back_inserter(bytes),
                         kernels::workspaceBytesOf);
  planner::addWorkspaces(dag, plan, bytes);
}

void addWorkspaces(std::shared_ptr<const planner::Dag> &dag,
                   planner::Plan &plan,
                   std::span<const std::vector<std::byte>> kernels) {
  if (std::ranges::none_of(kernels, kernels::workspaceBytesOf))
    return;
  auto changed = std::make_shared<planner::Dag>(*dag);
  addWorkspaces(*changed, plan, kernels);
  dag = std::move(changed);
}

} // namespace mgpu::capture

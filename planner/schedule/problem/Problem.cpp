// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/problem/Problem.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace mgpu::planner {

static Result<void> checkNodes(const Problem::Description &problem) {
  const size_t nodes = problem.durations.size();
  auto bad = [](std::string text) {
    return fail(ErrorKind::Invalid, "problem: " + std::move(text));
  };
  for (size_t node = 0; node < nodes; ++node)
    if (double us = problem.durations[node]; !(us >= 0) || !std::isfinite(us))
      return bad(fmt::format("node {} takes {} us", node, us));
  for (const auto &[node, use] : problem.uses)
    if (node >= nodes || use.resource >= problem.resources.size() ||
        !(use.share > 0) || !(use.share <= 1))
      return bad(fmt::format("node {} uses {} of resource {}", node, use.share,
                             use.resource));
  for (const auto &[from, to] : problem.precedences)
    if (from >= to || to >= nodes)
      return bad(fmt::format("an edge goes from node {} to node {}", from, to));
  return {};
}

static Result<void> checkBuffers(const Problem::Description &problem) {
  auto bad = [](std::string text) {
    return fail(ErrorKind::Invalid, "problem: " + std::move(text));
  };
  std::vector<bool> isUsed(problem.buffers.size());
  for (const auto &[buffer, node] : problem.users) {
    if (buffer >= isUsed.size() || node >= problem.durations.size())
      return bad(fmt::format("node {} uses buffer {}", node, buffer));
    isUsed[buffer] = true;
  }
  for (size_t b = 0; b < isUsed.size(); ++b)
    if (!isUsed[b] || problem.buffers[b].device >= problem.devices.size())
      return bad(fmt::format("buffer {} has no users, or no device", b));
  return {};
}

Result<Problem> Problem::create(Description description) {
  MGPU_TRY(checkNodes(description));
  MGPU_TRY(checkBuffers(description));
  Problem problem;
  const uint32_t nodes = uint32_t(description.durations.size());
  problem.isUnit.assign(description.resources.size(), true);
  for (const auto &[node, use] : description.uses)
    if (use.share < 1)
      problem.isUnit[use.resource] = false;
  problem.uses = Rows<ResourceUse>(nodes, description.uses);
  for (uint32_t node = 0; node < nodes; ++node)
    for (const ResourceUse &use : problem.uses[node])
      for (const ResourceUse &other : problem.uses[node])
        if (&use != &other && use.resource == other.resource)
          return fail(ErrorKind::Invalid,
                      fmt::format("problem: node {} uses resource {} twice",
                                  node, use.resource));
  auto &edges = description.precedences;
  problem.after = Rows<uint32_t>(nodes, edges);
  for (auto &[from, to] : edges)
    std::swap(from, to);
  problem.before = Rows<uint32_t>(nodes, edges);
  auto &users = description.users;
  std::sort(users.begin(), users.end());
  users.erase(std::unique(users.begin(), users.end()), users.end());
  problem.users = Rows<uint32_t>(uint32_t(description.buffers.size()), users);
  for (auto &[buffer, node] : users)
    std::swap(buffer, node);
  problem.touched = Rows<uint32_t>(nodes, users);
  problem.durations = std::move(description.durations);
  problem.resources = std::move(description.resources);
  problem.devices = std::move(description.devices);
  problem.buffers = std::move(description.buffers);
  return problem;
}

} // namespace mgpu::planner

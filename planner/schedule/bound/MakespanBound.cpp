// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/bound/MakespanBound.h"

#include "planner/schedule/bound/MemoryTime.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::planner {

/// The strongest set on one resource.
static JobSet bestSet(const Certificate &claims, const Problem &problem,
                      uint32_t resource) {
  std::vector<Job> jobs;
  for (uint32_t i = 0; i < problem.size(); ++i)
    for (const ResourceUse &use : problem.uses[i])
      if (use.resource == resource)
        jobs.push_back(
            {claims.heads[i].us, problem.work(i, use), claims.tails[i].us});
  return strongestSet(std::move(jobs));
}

Certificate makespanBound(const Problem &problem, bool byMemory) {
  Certificate certificate;
  certificate.heads = streamHeads(problem, Direction::Forward);
  certificate.tails = streamHeads(problem, Direction::Backward);
  for (uint32_t i = 0; i < problem.size(); ++i)
    if (double bound = certificate.heads[i].us + problem.durations[i] +
                       certificate.tails[i].us;
        bound > certificate.boundUs) {
      certificate.boundUs = bound;
      certificate.argument = NodeArgument{i};
    }
  for (uint32_t r = 0; r < problem.numResources(); ++r)
    if (const JobSet set = bestSet(certificate, problem, r);
        set.boundUs > certificate.boundUs) {
      certificate.boundUs = set.boundUs;
      certificate.argument = SetArgument{r, set.head, set.tail};
    }
  for (uint32_t d = 0; byMemory && d < problem.devices.size(); ++d)
    if (const auto best = memoryTime(certificate, problem, d);
        best && best->first > certificate.boundUs) {
      certificate.boundUs = best->first;
      certificate.argument = best->second;
    }
  return certificate;
}

/// Whether a claim rests on edges alone.
static bool isPath(const std::vector<Claim> &claims, uint32_t node) {
  while (auto *path = std::get_if<PathReason>(&claims[node].reason))
    node = path->node;
  return std::holds_alternative<NoReason>(claims[node].reason);
}

BoundArgument argumentOf(const Certificate &certificate) {
  if (std::holds_alternative<SearchArgument>(certificate.argument))
    return BoundArgument::Search;
  if (std::holds_alternative<MemoryArgument>(certificate.argument))
    return BoundArgument::Memory;
  if (auto *node = std::get_if<NodeArgument>(&certificate.argument))
    return isPath(certificate.heads, node->node) &&
                   isPath(certificate.tails, node->node)
               ? BoundArgument::CriticalPath
               : BoundArgument::StreamHeads;
  const auto &set = std::get<SetArgument>(certificate.argument);
  return set.head == 0 && set.tail == 0 ? BoundArgument::Work
                                        : BoundArgument::StreamSet;
}

/// Which bound it is, where the problem is too large for the better one.
static std::string coarseness(const Problem &problem) {
  return problem.size() <= maxStreamHeadNodes
             ? ""
             : fmt::format(
                   "; of more than {} nodes heads and tails are longest "
                   "paths alone",
                   maxStreamHeadNodes);
}

std::string explainBound(const Certificate &certificate,
                         const Problem &problem) {
  if (auto *node = std::get_if<NodeArgument>(&certificate.argument))
    return fmt::format(
        "node {} cannot start before {:.1f} us, takes {:.1f} us, and {:.1f} us "
        "follow it{}",
        node->node, certificate.heads[node->node].us,
        problem.durations[node->node], certificate.tails[node->node].us,
        coarseness(problem));
  if (auto *search = std::get_if<SearchArgument>(&certificate.argument))
    return fmt::format("a search of {} branches finds nothing shorter",
                       search->branches.size());
  if (auto *memory = std::get_if<MemoryArgument>(&certificate.argument)) {
    const auto [count, time] = countedBy(*memory, certificate, problem);
    return fmt::format("{} buffers of device {}, none live before {:.1f} us, "
                       "take its memory for {:.1f} us by their shares of it, "
                       "and {:.1f} us follow each",
                       count, memory->device, memory->head, time, memory->tail);
  }
  const auto &set = std::get<SetArgument>(certificate.argument);
  uint32_t count = 0;
  double sum = 0;
  for (uint32_t i = 0; i < problem.size(); ++i)
    for (const ResourceUse &use : problem.uses[i])
      if (use.resource == set.resource && certificate.heads[i].us >= set.head &&
          certificate.tails[i].us >= set.tail) {
        ++count;
        sum += problem.work(i, use);
      }
  return fmt::format("{} nodes on {}, none before {:.1f} us, are {:.1f} us of "
                     "work, and {:.1f} us follow each{}",
                     count, problem.resources[set.resource], set.head, sum,
                     set.tail, coarseness(problem));
}

} // namespace mgpu::planner

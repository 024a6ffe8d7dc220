// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/bound/MakespanBound.h"

#include <algorithm>
#include <fmt/format.h>
#include <queue>

namespace mgpu::planner {

namespace {

struct Job {
  double head, work, tail;
};

} // namespace

/// The tail b of the set that gives the one-machine bound of `jobs`, which are
/// sorted by head: always go on with the started job of the longest tail; the
/// job that ends last, its tail counted, has it.
static double criticalTail(const std::vector<Job> &jobs) {
  struct Open {
    double tail, left;
    bool operator<(const Open &other) const { return tail < other.tail; }
  };
  std::priority_queue<Open> open;
  double now = 0, bound = -1, critical = 0;
  size_t next = 0;
  while (next < jobs.size() || !open.empty()) {
    if (open.empty())
      now = std::max(now, jobs[next].head);
    for (; next < jobs.size() && jobs[next].head <= now; ++next)
      open.push({jobs[next].tail, jobs[next].work});
    Open job = open.top();
    open.pop();
    if (next < jobs.size() && now + job.left > jobs[next].head) {
      job.left -= jobs[next].head - now;
      now = jobs[next].head;
      open.push(job);
      continue;
    }
    now += job.left;
    if (now + job.tail > bound) {
      bound = now + job.tail;
      critical = job.tail;
    }
  }
  return critical;
}

/// The strongest set on one resource.
static std::pair<double, SetArgument>
bestSet(const Certificate &claims, const Problem &problem, uint32_t resource) {
  std::vector<Job> jobs;
  for (uint32_t i = 0; i < problem.size(); ++i)
    for (const ResourceUse &use : problem.uses[i])
      if (use.resource == resource)
        jobs.push_back(
            {claims.heads[i].us, problem.work(i, use), claims.tails[i].us});
  std::sort(jobs.begin(), jobs.end(),
            [](const Job &a, const Job &b) { return a.head < b.head; });
  SetArgument argument{resource, 0, criticalTail(jobs)};
  double best = 0, sum = 0;
  for (size_t k = jobs.size(); k-- > 0;)
    if (jobs[k].tail >= argument.tail) {
      sum += jobs[k].work;
      if (double bound = jobs[k].head + sum + argument.tail; bound > best) {
        best = bound;
        argument.head = jobs[k].head;
      }
    }
  return {best, argument};
}

Certificate makespanBound(const Problem &problem) {
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
    if (auto [bound, argument] = bestSet(certificate, problem, r);
        bound > certificate.boundUs) {
      certificate.boundUs = bound;
      certificate.argument = argument;
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

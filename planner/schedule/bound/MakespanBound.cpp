// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/bound/MakespanBound.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <queue>

namespace mgpu::planner {

namespace {

/// Rows of bits: the ancestors of each node, of which those of a node go once
/// all its successors have theirs.
class AncestorBits {
public:
  AncestorBits(const Problem &problem, Direction direction)
      : problem(problem), direction(direction), rows(problem.size()),
        open(problem.size()) {
    for (uint32_t i = 0; i < problem.size(); ++i)
      open[i] = problem.needs(i, opposite(direction)).size();
  }

  const std::vector<uint64_t> &collect(uint32_t node) {
    std::vector<uint64_t> &row = rows[node];
    row = takeRow();
    for (uint32_t other : problem.needs(node, direction)) {
      std::vector<uint64_t> &theirs = rows[other];
      for (size_t word = 0; word < row.size(); ++word)
        row[word] |= theirs[word];
      row[other / 64] |= uint64_t(1) << (other % 64);
      if (--open[other] == 0)
        unused.push_back(std::move(theirs));
    }
    return row;
  }

private:
  std::vector<uint64_t> takeRow() {
    std::vector<uint64_t> row;
    if (!unused.empty()) {
      row = std::move(unused.back());
      unused.pop_back();
    }
    row.assign((problem.size() + 63) / 64, 0);
    return row;
  }

  const Problem &problem;
  const Direction direction;
  std::vector<std::vector<uint64_t>> rows, unused;
  std::vector<size_t> open; ///< successors without a row
};

/// The nodes that are done on one resource, by rising head.
struct Done {
  struct Entry {
    double head, work;
    uint32_t node;
  };
  std::vector<Entry> entries;
  double total = 0; ///< the sum of their work
  double end = 0;   ///< no set of them ends later: head + its work

  void insert(const Entry &entry) {
    end = std::max(end, entry.head) + entry.work;
    auto at = std::upper_bound(
        entries.begin(), entries.end(), entry,
        [](const Entry &a, const Entry &b) { return a.head < b.head; });
    entries.insert(at, entry);
    total += entry.work;
  }

  /// Raises `claim` by what `ancestors` have to do here.
  void raise(Claim &claim, uint32_t resource,
             const std::vector<uint64_t> &ancestors) const {
    if (end * (1 + 1e-12) <= claim.us)
      return;
    double sum = 0, rest = total;
    for (size_t k = entries.size(); k-- > 0;) {
      const Entry &entry = entries[k];
      // Not even all that is left would give more.
      if (entry.head + sum + rest <= claim.us)
        return;
      rest -= entry.work;
      if (!(ancestors[entry.node / 64] >> (entry.node % 64) & 1))
        continue;
      sum += entry.work;
      if (entry.head + sum > claim.us) {
        claim.us = entry.head + sum;
        claim.reason = WorkReason{resource, entry.head};
      }
    }
  }
};

} // namespace

std::vector<Claim> streamHeads(const Problem &problem, Direction direction,
                               uint32_t mostNodes) {
  const uint32_t nodes = problem.size();
  const bool hasSets = nodes <= mostNodes;
  std::vector<Claim> claims(nodes);
  std::optional<AncestorBits> ancestors;
  if (hasSets)
    ancestors.emplace(problem, direction);
  std::vector<Done> done(problem.numResources());
  for (uint32_t k = 0; k < nodes; ++k) {
    const uint32_t node = problem.nodeAt(k, direction);
    Claim &claim = claims[node];
    for (uint32_t other : problem.needs(node, direction))
      if (double us = claims[other].us + problem.durations[other];
          us > claim.us)
        claim = {us, PathReason{other}};
    if (!ancestors)
      continue;
    const std::vector<uint64_t> &row = ancestors->collect(node);
    for (uint32_t r = 0; r < done.size(); ++r)
      done[r].raise(claim, r, row);
    for (const ResourceUse &use : problem.uses[node])
      done[use.resource].insert({claim.us, problem.work(node, use), node});
  }
  return claims;
}

namespace {

/// Work on one machine that cannot begin before `head`, and that `tail`
/// follows.
struct Job {
  double head, work, tail;
};

/// The jobs whose heads are at least `head` and whose tails at least `tail`.
struct JobSet {
  double boundUs = 0, head = 0, tail = 0;
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

/// The set of the largest head + work + tail: what Jackson's preemptive
/// schedule takes (Carlier 1982).
static JobSet strongestSet(std::vector<Job> jobs) {
  std::sort(jobs.begin(), jobs.end(),
            [](const Job &a, const Job &b) { return a.head < b.head; });
  JobSet best;
  best.tail = criticalTail(jobs);
  double sum = 0;
  for (size_t k = jobs.size(); k-- > 0;)
    if (jobs[k].tail >= best.tail) {
      sum += jobs[k].work;
      if (double bound = jobs[k].head + sum + best.tail; bound > best.boundUs) {
        best.boundUs = bound;
        best.head = jobs[k].head;
      }
    }
  return best;
}

// So many values of MemoryArgument::small are tried beside 0.
static constexpr size_t mostSizes = 8;

namespace {

/// A buffer as a job of the device's memory.
struct Tenant {
  uint64_t bytes;
  double head, time, tail;
};

class Tenants {
public:
  Tenants(const Certificate &claims, const Problem &problem, uint32_t device)
      : claims(claims), problem(problem) {
    const ProblemDevice &of = problem.devices[device];
    if (of.memoryBytes == UINT64_MAX || of.memoryBytes <= of.residentBytes)
      return;
    room = of.memoryBytes - of.residentBytes;
    size_t count = 0;
    for (const ProblemBuffer &buffer : problem.buffers)
      if (buffer.device == device && buffer.bytes > 0) {
        ++count;
        sum += double(buffer.bytes);
      }
    if (!isShort())
      return;
    ways.resize(problem.size() <= mostWaysNodes ? problem.size() : 0, -1);
    all.reserve(count);
    for (uint32_t b = 0; b < problem.buffers.size(); ++b)
      if (problem.buffers[b].device == device && problem.buffers[b].bytes > 0)
        all.push_back(tenantOf(b));
  }

  /// Whether the buffers cannot all be live at once.
  bool isShort() const { return sum > double(room); }

  uint64_t counted(uint64_t bytes, uint64_t small) const {
    return bytes < small ? 0 : bytes > room - small ? room : bytes;
  }

  /// The values of `small` for which more buffers count as all of the memory.
  std::vector<uint64_t> sizes() const {
    std::vector<uint64_t> large;
    for (const Tenant &each : all)
      if (each.bytes > room / 2 && each.bytes <= room)
        if (const uint64_t small = room - each.bytes + 1; small <= room / 2)
          large.push_back(small);
    std::sort(large.begin(), large.end());
    large.erase(std::unique(large.begin(), large.end()), large.end());
    std::vector<uint64_t> some{0};
    const size_t count = std::min(mostSizes, large.size());
    for (size_t k = 1; k <= count; ++k)
      some.push_back(large[k * large.size() / count - 1]);
    return some;
  }

  std::vector<Tenant> all;
  uint64_t room = 0; ///< beside the resident bytes

private:
  Tenant tenantOf(uint32_t b) {
    const ProblemBuffer &buffer = problem.buffers[b];
    std::span<const uint32_t> users = problem.users[b];
    Tenant made{buffer.bytes, claims.heads[users.front()].us, 0,
                buffer.isKept ? 0 : claims.tails[users.front()].us};
    for (uint32_t user : users) {
      made.head = std::min(made.head, claims.heads[user].us);
      made.tail = std::min(made.tail, claims.tails[user].us);
      made.time =
          std::max(made.time, problem.durations[user] +
                                  (buffer.isKept ? claims.tails[user].us : 0));
    }
    if (problem.size() <= mostWaysNodes &&
        buffer.bytes >= room / mostWaysShare && users.size() > 1)
      made.time = std::max(made.time, longestWay(users));
    return made;
  }

  /// From the first user's start to the end of any other: edges are followed
  /// forward.
  double longestWay(std::span<const uint32_t> users) {
    double longest = 0;
    const uint32_t first = users.front(), last = users.back();
    ways[first] = 0;
    auto user = users.begin();
    for (uint32_t node = first; node <= last; ++node) {
      const double start = std::exchange(ways[node], -1);
      const bool isUser = user != users.end() && *user == node;
      user += isUser;
      if (start < 0)
        continue;
      const double end = start + problem.durations[node];
      if (isUser)
        longest = std::max(longest, end);
      for (uint32_t next : problem.after[node])
        if (next <= last)
          ways[next] = std::max(ways[next], end);
    }
    return longest;
  }

  const Certificate &claims;
  const Problem &problem;
  std::vector<double> ways; ///< scratch: by node; below 0: not on a way
  double sum = 0;
};

} // namespace

/// The strongest argument of the memory of a device: each buffer is a job of
/// that machine, for as long as it is live at the least, by its share of the
/// memory. For `small` it tries 0 and what makes the larger buffers count as
/// all of it. Nothing where the memory has no limit, or holds all buffers at
/// once.
static std::optional<std::pair<double, MemoryArgument>>
memoryTime(const Certificate &claims, const Problem &problem, uint32_t device) {
  const Tenants tenants(claims, problem, device);
  if (!tenants.isShort())
    return std::nullopt;
  std::pair<double, MemoryArgument> best;
  for (uint64_t small : tenants.sizes()) {
    std::vector<Job> jobs;
    for (const Tenant &each : tenants.all)
      if (const uint64_t bytes = tenants.counted(each.bytes, small))
        jobs.push_back({each.head,
                        each.time * (double(bytes) / double(tenants.room)),
                        each.tail});
    if (const JobSet set = strongestSet(std::move(jobs));
        set.boundUs > best.first)
      best = {set.boundUs, {device, small, set.head, set.tail}};
  }
  return best;
}

/// The buffers that an argument counts, and the sum of their times by shares.
static std::pair<uint32_t, double> countedBy(const MemoryArgument &argument,
                                             const Certificate &claims,
                                             const Problem &problem) {
  const Tenants tenants(claims, problem, argument.device);
  std::pair<uint32_t, double> counted{0, 0};
  for (const Tenant &each : tenants.all)
    if (const uint64_t bytes = tenants.counted(each.bytes, argument.small);
        bytes > 0 && each.head >= argument.head && each.tail >= argument.tail) {
      ++counted.first;
      counted.second += each.time * (double(bytes) / double(tenants.room));
    }
  return counted;
}

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

Result<PlanBound> boundOf(std::span<const PhaseProblem> phases) {
  PlanBound bound;
  double longest = -1;
  for (const PhaseProblem &phase : phases) {
    Certificate certificate = makespanBound(phase.problem);
    MGPU_TRY(check(certificate, phase.problem));
    certificate.phase = phase.phase;
    bound.us += phase.times * certificate.boundUs;
    if (phase.times > 0 && phase.times * certificate.boundUs > longest) {
      longest = phase.times * certificate.boundUs;
      bound.by = argumentOf(certificate);
    }
    if (phase.times > 0)
      bound.words.push_back(explainBound(certificate, phase.problem));
    bound.certificates.push_back(std::move(certificate));
  }
  return bound;
}

void setBound(Plan &plan, double us, BoundArgument by) {
  constexpr double rounding = 1e-9;
  plan.lowerBoundUs =
      us > plan.makespanUs && us * (1 - rounding) <= plan.makespanUs
          ? plan.makespanUs
          : us;
  plan.boundBy = by;
}

} // namespace mgpu::planner

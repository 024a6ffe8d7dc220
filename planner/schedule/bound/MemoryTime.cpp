// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/bound/MemoryTime.h"

#include <algorithm>

namespace mgpu::planner {

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

std::optional<std::pair<double, MemoryArgument>>
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

std::pair<uint32_t, double> countedBy(const MemoryArgument &argument,
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

} // namespace mgpu::planner

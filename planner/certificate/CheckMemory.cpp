// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/certificate/CheckMemory.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::planner {

namespace {

class MemoryCheck {
public:
  MemoryCheck(const MemoryArgument &argument, const Certificate &certificate,
              const Problem &problem)
      : argument(argument), claims(certificate), problem(problem),
        longest(problem.size(), -1) {}

  Result<double> run() {
    if (argument.device >= problem.devices.size())
      return bad("is of a device that there is not");
    const ProblemDevice &device = problem.devices[argument.device];
    if (device.memoryBytes == UINT64_MAX ||
        device.memoryBytes <= device.residentBytes)
      return bad("is of a device whose memory has no limit, or no room");
    room = device.memoryBytes - device.residentBytes;
    if (argument.small > room / 2)
      return bad("takes more than half the memory as small");
    double sum = 0;
    bool isEmpty = true;
    for (uint32_t b = 0; b < problem.buffers.size(); ++b)
      if (problem.buffers[b].device == argument.device && counted(b) > 0 &&
          isInSet(b)) {
        sum += timeOf(b) * (double(counted(b)) / double(room));
        isEmpty = false;
      }
    return isEmpty ? 0 : argument.head + sum + argument.tail;
  }

private:
  static tl::unexpected<Error> bad(const char *what) {
    return fail(ErrorKind::Invalid,
                fmt::format("certificate: its memory argument {}", what));
  }

  /// Bytes of a buffer, as the argument counts them.
  uint64_t counted(uint32_t b) const {
    const uint64_t bytes = problem.buffers[b].bytes;
    return bytes < argument.small          ? 0
           : bytes > room - argument.small ? room
                                           : bytes;
  }

  bool isInSet(uint32_t b) const {
    if (problem.buffers[b].isKept && argument.tail > 0)
      return false; // nothing follows it
    for (uint32_t user : problem.users[b])
      if (claims.heads[user].us < argument.head ||
          claims.tails[user].us < argument.tail)
        return false;
    return true;
  }

  /// How long a buffer is live at the least.
  double timeOf(uint32_t b) {
    double time = 0;
    for (uint32_t user : problem.users[b])
      time = std::max(
          time, problem.durations[user] +
                    (problem.buffers[b].isKept ? claims.tails[user].us : 0));
    if (problem.size() > mostWaysNodes ||
        problem.buffers[b].bytes < room / mostWaysShare)
      return time;
    // The longest way from the first user's start to each node's end.
    const uint32_t first = problem.users[b].front(),
                   last = problem.users[b].back();
    longest[first] = problem.durations[first];
    for (uint32_t node = first + 1; node <= last; ++node) {
      double before = -1;
      for (uint32_t other : problem.before[node])
        if (other >= first)
          before = std::max(before, longest[other]);
      longest[node] = before < 0 ? -1 : before + problem.durations[node];
    }
    for (uint32_t user : problem.users[b])
      time = std::max(time, longest[user]);
    return time;
  }

  const MemoryArgument &argument;
  const Certificate &claims;
  const Problem &problem;
  uint64_t room = 0;           ///< beside the resident bytes
  std::vector<double> longest; ///< by node; below 0: no way leads there
};

} // namespace

Result<double> provenByMemory(const MemoryArgument &argument,
                              const Certificate &certificate,
                              const Problem &problem) {
  return MemoryCheck(argument, certificate, problem).run();
}

} // namespace mgpu::planner

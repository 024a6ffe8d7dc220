// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/bound/OneMachine.h"

#include <algorithm>
#include <queue>

namespace mgpu::planner {

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

JobSet strongestSet(std::vector<Job> jobs) {
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

} // namespace mgpu::planner

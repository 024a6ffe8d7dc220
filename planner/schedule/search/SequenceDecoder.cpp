// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/SequenceDecoder.h"

#include "planner/schedule/search/SerialDecoder.h"

#include <algorithm>

namespace mgpu::planner::search {

SequenceDecoder::SequenceDecoder(const Problem &problem)
    : problem(problem), live(problem.devices.size()),
      more(problem.devices.size()), most(problem.devices.size()),
      openUsers(problem.buffers.size()), isLive(problem.buffers.size()),
      freeAt(problem.numResources()), taken(problem.numResources()) {}

bool SequenceDecoder::fitsNow(uint32_t node,
                              const std::vector<uint64_t> &limits) {
  for (const ResourceUse &use : problem.uses[node])
    if (!problem.isUnit[use.resource] &&
        taken[use.resource] + use.share > 1 + shareRounding)
      return false;
  std::fill(more.begin(), more.end(), 0);
  for (uint32_t b : problem.touched[node])
    if (!isLive[b])
      more[problem.buffers[b].device] += problem.buffers[b].bytes;
  for (size_t d = 0; d < more.size(); ++d)
    if (more[d] > 0 && live[d] + more[d] > limits[d])
      return false;
  return true;
}

void SequenceDecoder::begin(uint32_t node, double start) {
  for (uint32_t b : problem.touched[node])
    if (!isLive[b]) {
      isLive[b] = true;
      live[problem.buffers[b].device] += problem.buffers[b].bytes;
    }
  for (size_t d = 0; d < live.size(); ++d)
    most[d] = std::max(most[d], live[d]);
  const double ends = start + problem.durations[node];
  for (const ResourceUse &use : problem.uses[node])
    if (problem.isUnit[use.resource])
      freeAt[use.resource] = ends;
    else
      taken[use.resource] += use.share;
  running.push({ends, node});
  end = std::max(end, ends);
}

void SequenceDecoder::finishFirst() {
  const uint32_t node = running.top().second;
  running.pop();
  for (const ResourceUse &use : problem.uses[node])
    taken[use.resource] -= problem.isUnit[use.resource] ? 0 : use.share;
  for (uint32_t b : problem.touched[node])
    if (--openUsers[b] == 0 && !problem.buffers[b].isKept)
      live[problem.buffers[b].device] -= problem.buffers[b].bytes;
}

bool SequenceDecoder::decode(const std::vector<uint32_t> &order,
                             const std::vector<uint64_t> &limits,
                             std::vector<double> &starts) {
  for (size_t d = 0; d < live.size(); ++d)
    live[d] = most[d] = problem.devices[d].residentBytes;
  for (uint32_t b = 0; b < openUsers.size(); ++b)
    openUsers[b] = uint32_t(problem.users[b].size());
  std::fill(isLive.begin(), isLive.end(), 0);
  std::fill(freeAt.begin(), freeAt.end(), 0);
  std::fill(taken.begin(), taken.end(), 0);
  running = {};
  starts.resize(problem.size());
  double now = 0;
  end = 0;
  for (uint32_t node : order) {
    for (uint32_t needed : problem.before[node])
      now = std::max(now, starts[needed] + problem.durations[needed]);
    for (const ResourceUse &use : problem.uses[node])
      now = std::max(now, freeAt[use.resource]);
    while (!running.empty() && running.top().first <= now)
      finishFirst();
    while (!fitsNow(node, limits)) {
      if (running.empty())
        return false;
      now = running.top().first;
      while (!running.empty() && running.top().first <= now)
        finishFirst();
    }
    starts[node] = now;
    begin(node, now);
  }
  return true;
}

} // namespace mgpu::planner::search

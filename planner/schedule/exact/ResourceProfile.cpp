// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/exact/ResourceProfile.h"

#include "support/Assert.h"

#include <algorithm>

namespace mgpu::planner::exact {

ResourceProfile::ResourceProfile(const Problem &problem) : problem(&problem) {
  int32_t largest = 0;
  for (uint32_t r = 0; r < problem.numResources(); ++r)
    largest = std::max(largest, problem.capacity(r));
  uint32_t fields = largest < (1 << 15) ? 4 : 1;
  uint32_t bits = 64 / fields;
  words = (problem.numResources() + fields - 1) / fields;
  guard = 0;
  for (uint32_t field = 0; field < fields; ++field)
    guard |= uint64_t(1) << (bits * field + bits - 1);
  whole.assign(words, guard);
  needs.assign(size_t(problem.size()) * words, 0);
  for (uint32_t r = 0; r < problem.numResources(); ++r) {
    uint32_t shift = bits * (r % fields);
    whole[r / fields] |= uint64_t(problem.capacity(r)) << shift;
    for (uint32_t a = 0; a < problem.size(); ++a)
      needs[size_t(a) * words + r / fields] |= uint64_t(problem.demand(a, r))
                                               << shift;
  }
  // One more unit: an activity without duration may be asked about at the end.
  top = problem.horizon() + 1;
  free.resize(size_t(top) * words);
  clear();
}

void ResourceProfile::clear() {
  if (words == 1)
    std::fill_n(free.begin(), size_t(top), whole[0]);
  else
    for (Time t = 0; t < top; ++t)
      std::copy(whole.begin(), whole.end(), free.begin() + size_t(t) * words);
  top = 0;
}

Time ResourceProfile::earliest(uint32_t activity, Time t) const {
  Time start = t, length = problem->duration(activity);
  // From the end of the window down: the last unit that is short moves the
  // window past it at once. Units found free are not asked for again.
  Time known = start;
  for (;;) {
    Time u = start + length;
    while (u > known && fitsAt(activity, u - 1))
      --u;
    if (u <= known)
      return start;
    known = start + length;
    start = u;
  }
}

void ResourceProfile::place(uint32_t activity, Time start) {
  Time end = start + problem->duration(activity);
  MGPU_ASSERT(start >= 0 && size_t(end) * words <= free.size(),
              "activities are placed before the horizon");
  const uint64_t *need = &needs[size_t(activity) * words];
  for (Time t = start; t < end; ++t)
    for (uint32_t w = 0; w < words; ++w)
      free[size_t(t) * words + w] -= need[w];
  top = std::max(top, end);
}

void ResourceProfile::remove(uint32_t activity, Time start) {
  Time end = start + problem->duration(activity);
  MGPU_ASSERT(start >= 0 && end <= top, "only what was placed is removed");
  const uint64_t *need = &needs[size_t(activity) * words];
  for (Time t = start; t < end; ++t)
    for (uint32_t w = 0; w < words; ++w)
      free[size_t(t) * words + w] += need[w];
}

} // namespace mgpu::planner::exact

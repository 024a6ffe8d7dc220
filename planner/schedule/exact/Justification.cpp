// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/exact/Justification.h"

namespace mgpu::planner::exact {

Justifier::Justifier(const Problem &problem)
    : problem(&problem), mirror(problem.reversed()), forward(problem),
      backward(mirror), mirrored(problem.size()) {}

Time Justifier::right(Starts &starts) {
  Time makespan = problem->makespan(starts);
  for (uint32_t a = 0; a < problem->size(); ++a)
    mirrored[a] = makespan - starts[a] - problem->duration(a);
  backward.orderByStarts(mirrored, list);
  makespan = backward.serial(list, mirrored);
  for (uint32_t a = 0; a < problem->size(); ++a)
    starts[a] = makespan - mirrored[a] - problem->duration(a);
  return makespan;
}

Time Justifier::left(Starts &starts) {
  forward.orderByStarts(starts, list);
  return forward.serial(list, starts);
}

} // namespace mgpu::planner::exact

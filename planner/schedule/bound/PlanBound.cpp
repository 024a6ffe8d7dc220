// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/bound/PlanBound.h"

namespace mgpu::planner {

Result<PlanBound> boundOf(std::span<const PhaseProblem> phases) {
  PlanBound bound;
  double longest = -1;
  for (const PhaseProblem &phase : phases) {
    Certificate certificate = makespanBound(phase.problem);
    MGPU_TRY(check(certificate, phase.problem));
    bound.us += certificate.boundUs;
    if (certificate.boundUs > longest) {
      longest = certificate.boundUs;
      bound.by = argumentOf(certificate);
    }
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

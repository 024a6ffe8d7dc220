// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/bound/PlanBound.h"

namespace mgpu::planner {

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

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/TargetSearch.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::planner {

static std::string timesOf(const TransformGain &gain) {
  if (gain.beforeUs == 0)
    return fmt::format("makespan {:.3f} us where nothing fitted the memory, "
                       "with contention {:.3f} us",
                       gain.afterUs, gain.contendedAfterUs);
  return fmt::format("makespan {:.3f} -> {:.3f} us, with contention {:.3f} -> "
                     "{:.3f} us",
                     gain.beforeUs, gain.afterUs, gain.contendedBeforeUs,
                     gain.contendedAfterUs);
}

std::string explainModel(const TargetPlan &plan, const Dag &dag,
                         const Machine &given) {
  std::string out;
  if (!given.isHost())
    out = fmt::format("with contention: makespan {:.3f} us, one node after the "
                      "other {:.3f} us\n",
                      plan.contendedUs, plan.serialUs);
  for (const TransformGain &gain : plan.gains) {
    out += fmt::format("transform {}: ", toString(gain.transform));
    if (gain.changes == 0)
      out += "nothing to change\n";
    else if (gain.afterUs == 0)
      out += fmt::format("{} changes, does not fit the memory\n", gain.changes);
    else
      out += fmt::format("{} changes, {}, {}\n", gain.changes, timesOf(gain),
                         gain.isKept ? "kept" : "not kept");
    for (const std::string &line : gain.left)
      out += "  " + line + "\n";
  }
  const Machine machine =
      plan.algorithms.empty() ? given.withoutAlgorithms() : given;
  out += explainAlgorithms(plan.algorithms, dag, machine);
  double sums[allOrigins.size()] = {}, total = 0;
  for (uint32_t i = 0; i < dag.nodes.size(); ++i) {
    Estimate estimate = machine.estimate(dag, NodeId{i});
    if (i < plan.isScaled.size() && plan.isScaled[i])
      estimate.origin = Origin::Assumed;
    sums[size_t(estimate.origin)] += estimate.us;
    total += estimate.us;
  }
  auto share = [&](Origin origin) {
    return total > 0 ? 100 * sums[size_t(origin)] / total : 0;
  };
  if (std::count(plan.isScaled.begin(), plan.isScaled.end(), true) > 0)
    out += fmt::format(
        "{} nodes that transforms made: {}\n",
        std::count(plan.isScaled.begin(), plan.isScaled.end(), true),
        scaledWords);
  out += fmt::format("durations of {}: {:.0f} % measured or frozen, {:.0f} % "
                     "published, {:.0f} % assumed\n",
                     machine.name(),
                     share(Origin::Measured) + share(Origin::Given),
                     share(Origin::Published), share(Origin::Assumed));
  std::vector<Coefficient> list = machine.coefficients();
  contentionOf(machine.topology(), &list);
  for (const Coefficient &c : list)
    out += fmt::format("  {} = {:.6g} {}({}: {})\n", c.name, c.value,
                       c.unit.empty() ? "" : c.unit + " ", toString(c.origin),
                       c.source);
  return out;
}

} // namespace mgpu::planner

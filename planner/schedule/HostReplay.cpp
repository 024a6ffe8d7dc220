// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/HostReplay.h"

#include "support/Units.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::planner {

// Measured by bench-replay (docs/benchmarks.md): an edge of `pingpong` from one
// thread to another. It is what a cache line takes from core to core.
static constexpr double handOverUs = 0.13;
/// Assumed: to wake a thread takes some 5 us. Assumed rates of the host are a
/// quarter of a core's, so that beside them it counts four times.
static double wakeUs(const Plan &plan) {
  const bool isMeasured =
      std::ranges::all_of(plan.steps, [](const PlanStep &step) {
        return step.origin == Origin::Measured;
      });
  return isMeasured ? 5 : 20;
}

/// The time of one phase. The first thread tells the others to begin it, and
/// waits for them at its end (device/host/WorkerPool.cpp).
static double phaseUs(const Plan &plan, const Dag &dag,
                      const Predecessors &predecessors, Phase phase,
                      uint32_t threads, double handOverUs) {
  std::vector<double> end(dag.nodes.size(), 0), free(threads, handOverUs);
  free[0] = 0;
  std::vector<uint32_t> threadOf(dag.nodes.size(), 0);
  double makespan = 0;
  for (const PlanStep &step : plan.steps) {
    const DagNode &node = dag.node(step.node);
    if (node.phase != phase)
      continue;
    uint32_t thread = node.devices.empty() || node.devices[0].isHost()
                          ? 0
                          : uint32_t(node.devices[0].value) % threads;
    double start = free[thread];
    auto follow = [&](NodeId before) {
      if (dag.node(before).phase != phase)
        return;
      bool isOther = threadOf[before.value] != thread;
      start = std::max(start, end[before.value] + (isOther ? handOverUs : 0));
    };
    for (const DepEdge &edge : predecessors.of(step.node))
      follow(edge.from);
    for (NodeId wait : step.waits)
      follow(wait);
    threadOf[step.node.value] = thread;
    end[step.node.value] = free[thread] = start + step.durationUs + hostNodeUs;
    makespan = std::max(makespan, free[thread] + (thread ? handOverUs : 0));
  }
  return makespan;
}

static double replayUs(const Plan &plan, const Dag &dag, uint32_t threads,
                       double handOverUs) {
  Predecessors predecessors(dag);
  auto of = [&](Phase phase) {
    return phaseUs(plan, dag, predecessors, phase, threads, handOverUs);
  };
  return of(Phase::Prologue) + double(dag.loop.trips) * of(Phase::Replay) +
         of(Phase::Epilogue);
}

double hostReplayUs(const Plan &plan, const Dag &dag, uint32_t threads) {
  return replayUs(plan, dag, std::max(threads, 1u), handOverUs);
}

std::string HostPrediction::text() const {
  return fmt::format("{} us +-{:.0f} % a replay here on {}",
                     withinError(us, error), 100 * error,
                     counted(threads, "thread"));
}

std::optional<HostPrediction> predictReplay(const Plan &plan, const Dag &dag,
                                            uint32_t threads) {
  if (!(plan.error > 0) || threads == 0)
    return std::nullopt;
  return HostPrediction{threads, hostReplayUs(plan, dag, threads), plan.error};
}

std::string planLine(const Plan &plan, const Dag &dag, uint32_t threads) {
  const auto predicted = predictReplay(plan, dag, threads);
  return plan.verdictLine() +
         (predicted ? "; predicted " + predicted->text() : "");
}

uint32_t usefulThreads(const Plan &plan, const Dag &dag, uint32_t most) {
  uint32_t best = 1;
  const double wake = wakeUs(plan);
  double leastUs = replayUs(plan, dag, 1, wake);
  for (uint32_t threads = 2; threads <= most; ++threads)
    if (const double us = replayUs(plan, dag, threads, wake); us < leastUs) {
      best = threads;
      leastUs = us;
    }
  return best;
}

} // namespace mgpu::planner

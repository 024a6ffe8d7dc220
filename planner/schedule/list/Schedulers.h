// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_LIST_SCHEDULERS_H
#define MGPU_PLANNER_SCHEDULE_LIST_SCHEDULERS_H

// From an order of a DAG's nodes to a plan: a scheduler chooses the order and
// the streams, and schedule() adds waits, predicted times and the arena. The
// bound is added by those who call it (planner/schedule/MakePlan.h).
//
// The planning model, to which all predicted times and the bound refer:
// - A device runs one kernel, one copy and one collective at a time; the three
//   overlap freely. So does the host. A node on several devices takes its
//   resource on all of them, from start to end.
// - A stream runs its steps in plan order, one at a time.
// - The phases (planner/dag/Dag.h) follow each other: none starts before the
//   one before has ended. A dependence across phases still gets its wait.
// - Durations do not depend on what else runs.
// Resources shape predicted times only; correctness rests on streams and waits.

#include "planner/cost/LatencyEstimator.h"
#include "planner/cost/TargetMachine.h"
#include "planner/dag/Dag.h"
#include "planner/plan/Plan.h"
#include "planner/plan/Verify.h"

#include <optional>

namespace mgpu::planner {

struct ScheduleOptions {
  /// "list" is priority list scheduling: longest path to the end first; the
  /// stream that lets the node start first. Collectives of one communicator
  /// keep DAG order. Without SchedulePolicy::order it is program order:
  /// kernels, collectives and copies on a stream each, as far as there are
  /// streams; collectives, where they may be early, right behind the last node
  /// they need. "serial" is program order on one stream, each node after the
  /// one before it on all devices: the baseline every other plan is compared
  /// with. "shuffled" is any order and any stream the DAG allows, for tests.
  std::string scheduler = "list";
  uint64_t seed = 0;                  ///< "shuffled" draws the plan by it
  uint32_t streamsPerDevice = 4;      ///< "list" uses at most this many
  SchedulePolicy schedulePolicy = {}; ///< of "list"; it knows no `join`
  PlanLimits limits = {};
  bool placesBuffers = true; ///< else the arena is left out
};

struct OrderedStep {
  NodeId node;
  std::vector<PlanStream> streams;
};

/// The plan of a scheduler; of `order`, where it is given: a topological order
/// of all nodes, phases ascending, which `options` names. Waits are minimal:
/// none is implied by stream order and the other waits. Fails when a limit is
/// exceeded or a duration is not a finite time.
Result<Plan> schedule(const Dag &dag, const LatencyEstimator &latency,
                      const ScheduleOptions &options = {},
                      std::optional<std::vector<OrderedStep>> order = {});

/// Longest paths within each node's phase, the node itself left out.
struct Paths {
  std::vector<double> head; ///< to the node
  std::vector<double> tail; ///< from the node
};
Paths longestPaths(const Dag &dag, const std::vector<double> &durations);

/// Durations of all nodes; an error if one is not a finite time.
Result<std::vector<double>> nodeDurations(const Dag &dag,
                                          const LatencyEstimator &latency);

/// A number for the resource (device, class); the host's come first.
inline size_t resourceIndex(DeviceId device, WorkClass work) {
  return size_t(device.value + 1) * 3 + size_t(work);
}
inline size_t numResources(const Dag &dag) {
  return (size_t(dag.numDevices) + 1) * 3;
}

/// Why a step starts no earlier than it does.
struct StartReason {
  enum Kind : uint8_t {
    Immediately, ///< nothing holds it
    Dependence,  ///< it needs `node`'s result or must not overtake it
    Order,       ///< the plan waits for `node` though the program does not
    Stream,      ///< its stream runs `node`
    Resource,    ///< the device runs `node` of the same class
    Phase,       ///< `node` ends the phase before
  };
  Kind kind = Immediately;
  NodeId node;
};

/// Predicts the times of a plan whose steps, streams and waits are set: sets
/// each startUs and the lengths of the parts under the planning model, steps
/// taking resources in plan order. Returns the reason of each start.
std::vector<StartReason> predictTimes(Plan &plan, const Dag &dag);
/// Writes into a plan on what its durations rest, which are `latency`'s, and
/// its error: the mean of the replay's steps, weighed by their time, as steps
/// of one kind err alike.
void recordOrigins(Plan &plan, const Dag &dag, const LatencyEstimator &latency);
/// Gives a plan the durations of `latency` and what they rest on, with the
/// times that follow. Its order, waits, arena and bound stay.
void retime(Plan &plan, const Dag &dag, const LatencyEstimator &latency);

/// Durations that are known: those of a plan's steps, or given.
class PlanDurations final : public LatencyEstimator {
public:
  PlanDurations(const Plan &plan, const Dag &dag)
      : PlanDurations(durationsOf(plan, dag), plan.model) {}
  PlanDurations(std::vector<double> durations, std::string model)
      : durations(std::move(durations)), model(std::move(model)) {}
  double durationUs(const Dag &, NodeId node) const override {
    return durations[node.value];
  }
  std::string name() const override { return model; }

private:
  std::vector<double> durations; ///< by node
  std::string model;
};

/// The order that the scheduler of `options` chooses.
Result<std::vector<OrderedStep>> orderOf(const Dag &dag,
                                         const LatencyEstimator &latency,
                                         const ScheduleOptions &options);

/// The order of list scheduling: at each time the node of the greatest priority
/// among those that can start comes first. `early` as in SchedulePolicy.
std::vector<OrderedStep> listOrder(const Dag &dag,
                                   const std::vector<double> &durations,
                                   const std::vector<double> &priorities,
                                   uint32_t streams, bool early = true);

/// Where each class of work has a stream of its own: which.
inline StreamId streamOf(WorkClass work) {
  return StreamId{work == WorkClass::Kernel       ? 0u
                  : work == WorkClass::Collective ? 1u
                                                  : 2u};
}

/// By node: what a collective must follow to keep its place in the program,
/// beside what the DAG says; empty for other nodes. For each device that is
/// what stands between the collective before it and itself, that one included.
std::vector<std::vector<uint32_t>> placesOfCollectives(const Dag &dag);

/// Each step waits for what has ended on its devices when it starts, by the
/// plan's own times, which stay. Buffers that do not meet in time may then
/// share bytes: the arena is laid out anew.
void followTimes(Plan &plan, const Dag &dag);

// How each collective of a plan is to be done: the algorithm and protocol that
// are the fastest by NCCL's own estimate on the machine.

/// Microseconds are NCCL's estimates; the plan's duration may rest on a
/// measurement or the file instead, which `durationFrom` says.
struct AlgorithmChoice {
  NodeId node;
  NcclTime best;
  std::optional<NcclTime> next; ///< the runner-up
  std::string durationFrom;
};

/// Chooses for every collective that has more than one algorithm; by node.
std::vector<AlgorithmChoice> chooseAlgorithms(const Dag &dag,
                                              const Machine &machine);

/// Writes the choices into the plan's steps.
void recordAlgorithms(Plan &plan, const std::vector<AlgorithmChoice> &choices);

/// One line for each group of alike collectives (kind, bytes, choice), the most
/// frequent first: the choice, the runner-up, by how much it is slower, and
/// what the duration in the plan is from.
std::string explainAlgorithms(const std::vector<AlgorithmChoice> &choices,
                              const Dag &dag, const Machine &machine);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_LIST_SCHEDULERS_H

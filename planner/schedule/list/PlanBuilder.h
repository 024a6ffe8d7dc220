// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_LIST_PLANBUILDER_H
#define MGPU_PLANNER_SCHEDULE_LIST_PLANBUILDER_H

// Builds the plan of every scheduler: they choose an order and streams, this
// adds waits, predicted times and the arena.

#include "planner/schedule/list/Schedulers.h"

namespace mgpu::planner {

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

enum class WaitPolicy {
  Dependences, ///< each step follows its DAG predecessors
  Everything,  ///< each step follows the step before it as well
};

struct OrderedStep {
  NodeId node;
  std::vector<PlanStream> streams;
};

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

/// The program's own order (see scheduleList).
std::vector<OrderedStep> programOrder(const Dag &dag, uint32_t streams,
                                      bool early);

/// By node: what a collective must follow to keep its place in the program,
/// beside what the DAG says; empty for other nodes. For each device that is
/// what stands between the collective before it and itself, that one included.
std::vector<std::vector<uint32_t>> placesOfCollectives(const Dag &dag);

/// Builds a plan from `order` (a topological order, phases ascending) and the
/// streams of each step of it. Waits are minimal: none is implied by stream
/// order and the other waits. Fails when a limit is exceeded.
Result<Plan> finishPlan(std::string scheduler, std::vector<OrderedStep> order,
                        uint32_t streamsPerDevice, WaitPolicy policy,
                        const Dag &dag, const LatencyEstimator &latency,
                        const ScheduleOptions &options);

/// Each step waits for what has ended on its devices when it starts, by the
/// plan's own times, which stay. Buffers that do not meet in time may then
/// share bytes: the arena is laid out anew.
void followTimes(Plan &plan, const Dag &dag);

/// The checks every scheduler makes first: the DAG is sound, streams allowed.
/// Returns the streams per device to use, at most `wanted`.
Result<uint32_t> checkInput(const Dag &dag, uint32_t wanted,
                            const ScheduleOptions &options);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_LIST_PLANBUILDER_H

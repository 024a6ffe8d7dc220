// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_PLAN_PLAN_H
#define MGPU_PLANNER_PLAN_PLAN_H

// A plan: which stream each DAG node runs on, in which order, what it waits
// for, and where each buffer lies. Data and text form only; schedulers make
// plans, verify() (Verify.h) judges them.

#include "planner/dag/CollectiveAlgorithm.h"
#include "planner/dag/Origin.h"
#include "planner/dag/PlanPart.h"

#include <optional>
#include <string>
#include <vector>

namespace mgpu::planner {

/// The liberties of a schedule that the program does not state. Each is a
/// transform with a switch and a gain of its own (transform/Transform.h).
struct SchedulePolicy {
  /// Nodes are created in an order that is chosen; else in the program's.
  bool order = true;
  /// A collective starts as early as its inputs allow; else only after all that
  /// stands before it in the program on its devices.
  bool early = true;
  /// Work that would slow down when overlapped is serialised; else the schedule
  /// forks wherever the program lets it.
  bool join = true;
  bool operator==(const SchedulePolicy &) const = default;
};
inline constexpr SchedulePolicy strictPolicy{false, false, false};

struct StreamId {
  uint32_t value = 0;
  auto operator<=>(const StreamId &) const = default;
};

/// One stream of one device. The host's own work (host-to-host copies) runs
/// on streams of DeviceId::host().
struct PlanStream {
  DeviceId device;
  StreamId stream;
  auto operator<=>(const PlanStream &) const = default;
};

struct PlanStep {
  NodeId node;
  std::vector<PlanStream>
      streams;               ///< one per device the node occupies, ascending
  std::vector<NodeId> waits; ///< nodes of other streams it waits for, ascending
  double startUs = 0;    ///< predicted, from the begin of its PlanPart; of a
                         ///< rolled loop only the first trip is counted
  double durationUs = 0; ///< predicted
  Origin origin = Origin::Assumed; ///< of the duration
  /// How NCCL does a collective fastest by the model, where the model says.
  std::optional<CollectiveAlgorithm> algorithm = std::nullopt;
};

/// Where a device buffer lies in its device's arena.
struct Placement {
  BufferId buffer;
  uint64_t offset = 0; ///< bytes, a multiple of arenaAlignment
};
inline constexpr uint64_t arenaAlignment = 256;

/// The argument that proves a plan's lower bound; MakespanBound.h makes such
/// proofs.
enum class BoundArgument : uint8_t {
  Unknown,
  Work,         ///< all the work of one resource
  CriticalPath, ///< the longest path
  StreamHeads,  ///< one node, and what must run before and after it
  StreamSet,    ///< nodes of one resource that share a head and a tail
  Memory,       ///< what is live, for how long, in the memory of one device
  Search,       ///< an exhaustive search; its decisions are the witness
};
inline constexpr std::array allBoundArguments = {
    BoundArgument::Work,        BoundArgument::CriticalPath,
    BoundArgument::StreamHeads, BoundArgument::StreamSet,
    BoundArgument::Memory,      BoundArgument::Search};
/// "work", "path", "heads", "set", "memory", "search"; "" of Unknown.
std::string_view toString(BoundArgument argument);

struct Plan {
  std::string scheduler;
  std::string model; ///< what the durations come from
  /// Changes made to the program's DAG before it was planned, in order
  /// (planner/schedule/transform); the plan is of what they left.
  std::vector<std::string> transforms;
  uint32_t numDevices = 0;
  uint32_t streamsPerDevice = 1;
  /// The most bytes that an arena and the resident buffers of a device may take
  /// together; the bound may rest on it. Without a limit UINT64_MAX.
  uint64_t memoryBytes = UINT64_MAX;
  std::vector<PlanStep> steps;       ///< creation order, a topological order;
                                     ///< order within a stream = this order
  std::vector<Placement> placements; ///< every buffer of arenas, by BufferId
  std::vector<uint64_t> arenaBytes;  ///< per device
  double makespanUs = 0;   ///< of one replay, with all trips of a rolled loop
  double lowerBoundUs = 0; ///< of makespanUs
  double loadUs = 0, fetchUs = 0; ///< what runs once, beside the replays
  /// The share by which these times may be wrong; 0: that is not known.
  double error = 0;
  BoundArgument boundBy = BoundArgument::Unknown;

  /// How far from the least makespan the plan can be: "optimal", "within 0.39 %
  /// of the optimum"; "" without a bound.
  std::string boundVerdict() const;
  /// boundVerdict(), which ends in "under assumed rates" where a step's time
  /// is.
  std::string verdict() const;
  /// Microseconds by the model, without digits that it cannot know.
  std::string usText(double us) const;
  /// "makespan 12 us +-40 %, bound 12 us by path: optimal (host, calibrated)".
  std::string verdictLine() const;
  /// "load 84.4 us, once before the replays; fetch 2 us, once after them"; ""
  /// where there is neither.
  std::string onceLine() const;
};

/// The durations of the plan's steps, by node of its DAG.
std::vector<double> durationsOf(const Plan &plan, const Dag &dag);

/// The bytes of the largest arena; 0 without devices.
uint64_t largestArena(const Plan &plan);

/// The text form: readable, diffable, read back exactly.
std::string toText(const Plan &plan, const Dag &dag);
/// Errors name the line. `dag` is as the plan's transforms leave it.
Result<Plan> parsePlan(std::string_view text, const Dag &dag);
/// The transforms alone, which parsePlan's caller must know first.
Result<std::vector<std::string>> parsePlanTransforms(std::string_view text);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_PLAN_PLAN_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_TIMELINE_H
#define MGPU_PLANNER_SCHEDULE_TIMELINE_H

// A plan made visible: trace, graph, explanation. All times are predictions of
// the plan's model, of a replay unless they are said to be of the load or the
// fetch. The plans given must have passed verify().

#include "planner/cost/LatencyEstimator.h"
#include "planner/dag/Shardings.h"
#include "planner/plan/Plan.h"
#include "planner/schedule/list/Schedulers.h"

namespace mgpu::planner {

/// Chrome trace events, as Perfetto and chrome://tracing read them: one
/// process per device (the host after the last), one thread per stream. Load,
/// replay and fetch follow each other; where there are several, a process after
/// the host's shows them.
std::string toChromeTrace(const Plan &plan, const Dag &dag);

/// A replay as a picture: one row per stream, a tooltip per step. Work of a
/// pipeline has the colour of its microbatch, and rows name the mesh of their
/// device.
std::string toSvg(const Plan &plan, const Dag &dag,
                  const std::vector<MeshDevices> &meshes = {});

/// Graphviz: one cluster per stream in its order, waits as edges between.
std::string toDot(const Plan &plan, const Dag &dag);

struct DeviceTimes {
  double kernelUs = 0;     ///< a kernel runs
  double collectiveUs = 0; ///< a collective runs
  double copyUs = 0;       ///< a copy runs
  double exposedUs = 0;    ///< a collective or copy runs and no kernel does
};

struct PlanSummary {
  double makespanUs = 0;
  double lowerBoundUs = 0;
  double ratio = 1;            ///< makespan over bound; 1 for an empty plan
  double serialMakespanUs = 0; ///< the sum of a replay's durations
  std::vector<DeviceTimes> devices;
  uint64_t waits = 0;       ///< cross-stream waits
  uint64_t bufferBytes = 0; ///< sum of device buffers; arenas may be smaller
  uint64_t arenaBytes = 0;
  /// The size of all arenas that this plan cannot go below (ArenaLayout.h); and
  /// the largest ratio of a device's arena to its own bound.
  uint64_t arenaBoundBytes = 0;
  double arenaRatio = 1;
};
PlanSummary summarize(const Plan &plan, const Dag &dag);

/// Why a collective does not hide behind kernels.
enum class ExposedReason : uint8_t {
  Dependency,  ///< what it needs and what needs it leave no work to run beside
  Memory,      ///< the plan holds it back to reuse bytes
  Contention,  ///< another collective had the links
  RankOverlap, ///< it must follow one that shares two ranks with it
  ChainLimit,  ///< its stream was busy
};
std::string_view toString(ExposedReason reason);

struct ExposedCollective {
  NodeId node;
  DeviceId device;      ///< on which most of it is exposed
  double exposedUs = 0; ///< it runs and no kernel does
  ExposedReason reason = ExposedReason::Dependency;
  std::string why;          ///< names the nodes
  std::string change;       ///< what would hide it
  double independentUs = 0; ///< kernels there that could run beside it
};
/// The most exposed collectives, the worst first. O(edges) each.
std::vector<ExposedCollective>
exposedCollectives(const Plan &plan, const Dag &dag, size_t most = 10);

/// "load:\n", "replay:\n" or "fetch:\n" before the first step of the part, in
/// lists of the steps; "" before others, and where a replay is all there is.
std::string partTitle(const Plan &plan, const Dag &dag, size_t step);

/// For people: makespan and bound, what is exposed and what would help, memory.
std::string summaryText(const Plan &plan, const Dag &dag);
/// A table of the steps, in plan order.
std::string stepsText(const Plan &plan, const Dag &dag);

/// By step: why it starts no earlier, in words.
std::vector<std::string> reasonsOf(const Plan &plan, const Dag &dag);

/// A header, then one line per step (where, when, how long, and what it waited
/// for), then the summary in words, then the collectives most exposed, each
/// with its reason.
std::string explain(const Plan &plan, const Dag &dag);

/// The nodes of one kind ("kernel", "matrix product", "copy", "all_reduce").
struct KindOrigins {
  std::string kind;
  std::array<uint32_t, allOrigins.size()> nodes{}; ///< by origin

  /// Times of one kind from several origins: what is longer than what may be
  /// the origins' doing.
  bool isMixed() const;
};
/// By kind, in the order of their first nodes.
std::vector<KindOrigins> originsOf(const Plan &plan, const Dag &dag);

/// A line for each kind: "kernel: 12 measured, 6 assumed: mixed, so ...".
std::vector<std::string> originLines(const Plan &plan, const Dag &dag);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_TIMELINE_H

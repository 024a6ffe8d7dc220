// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_ALIKE_QUOTIENT_H
#define MGPU_PLANNER_SCHEDULE_ALIKE_QUOTIENT_H

// Devices that do alike are planned once. A quotient DAG has one device for
// each class of such devices, and one node for what each of them does in its
// turn; a schedule of it is one of the whole, and so is its bound.

#include "planner/dag/Rows.h"
#include "planner/schedule/bound/MakespanBound.h"
#include "planner/schedule/list/Schedulers.h"

#include <optional>

namespace mgpu::planner {

/// A DAG by classes of its devices. Nothing is taken on trust: a plan that
/// lift() makes is for verify(), and a certificate of the whole for check().
struct Quotient {
  /// Each node has the duration of those it stands for as its own, and a
  /// collective is one of the classes of its members.
  Dag dag;
  std::vector<uint32_t> nodeOf;  ///< by node of the whole
  Rows<uint32_t> nodes;          ///< of the whole, by node
  std::vector<uint32_t> classOf; ///< by device of the whole, host first
  std::vector<DeviceId> faces;   ///< by class: its first device
  std::vector<std::vector<uint32_t>> work; ///< by device: its nodes, in order
  /// By node: where it stands in the work of the devices of a class.
  struct Place {
    uint32_t ofClass, at;
    auto operator<=>(const Place &) const = default;
  };
  std::vector<std::vector<Place>> places;
  std::vector<uint32_t> bufferOf; ///< by buffer of the whole: of its class

  std::vector<double> durations() const; ///< by node
  /// The nodes of the whole that `node` stands for on the devices of `beside`.
  std::vector<NodeId> onDevicesOf(NodeId node, const DagNode &beside) const;
};

/// The quotient by the classes of devices of which each does nodes of the same
/// kinds and times in the same order, on buffers of the same sizes, with the
/// same dependences up to the number of the device. None where no two devices
/// do, where a node would depend on another that stands beside it, and where an
/// exact search can take all nodes there are.
std::optional<Quotient> quotientOf(const Dag &whole,
                                   std::span<const double> durations);

/// Makes the plan of a quotient one of the whole: all nodes in its order, on
/// its streams, with its waits, and buffers where it has them. Internal where
/// that takes longer.
Result<void> lift(Plan &plan, const Quotient &quotient, const Dag &whole);

/// The bound of a quotient, with certificates of the whole, which are checked
/// as any others; `phases` are of the whole.
Result<PlanBound> liftBound(const Quotient &quotient, const Dag &whole,
                            std::span<const PhaseProblem> phases);
/// That, or where there is none boundOf(phases).
Result<PlanBound> boundOf(const Dag &dag, std::span<const double> durations,
                          std::span<const PhaseProblem> phases);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_ALIKE_QUOTIENT_H

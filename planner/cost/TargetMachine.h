// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_COST_TARGETMACHINE_H
#define MGPU_PLANNER_COST_TARGETMACHINE_H

// A machine that programs are planned for: devices, memory, rates with their
// origin, links. It is made alike of a `sim:` topology, of a calibration's, of
// what a driver says of its GPU (GpuTopology.h), of the host, and of times that
// were measured of nodes.

#include "device/api/Topology.h"
#include "planner/cost/CollectiveTable.h"
#include "planner/cost/HostRates.h"
#include "planner/cost/LatencyEstimator.h"

#include <map>
#include <memory>
#include <tuple>

namespace mgpu::planner {

struct Coefficient {
  std::string name, unit;
  double value = 0;
  Origin origin = Origin::Assumed;
  std::string source;
};

/// A duration and where it comes from.
struct Estimate {
  double us = 0;
  Origin origin = Origin::Assumed;
  std::string how; ///< "curve fitted to sm_90 all_reduce of 8", ...
  /// The share by which it may be wrong, where that is known: of the host, and
  /// of what was measured of its nodes.
  double error = 0;
};

/// Microseconds of nodes by NodeId; none where nothing was measured.
using NodeTimes = std::vector<std::optional<double>>;

/// Times measured of the nodes pass through, and frozen durations. The host's
/// are in HostMachine.cpp. Else a machine that was calibrated gives what
/// was measured there: collectives of as many ranks on one node, matrix
/// products, and the rates and starts of the rest. Else, times the node's
/// factor,
/// - collectives: the table given, where it has the curve; else the curve
///   shipped for the architecture; else NCCL's estimate for the fastest
///   algorithm or, where none is chosen, for ring Simple. The first two hold
///   for one NVLink node, by whatever algorithm NCCL took there, and the curve
///   carries them over to other link rates.
/// - matrix products of bf16 (DagNode::isMatmul, or a kernel's Product)
///   where it is not known what they ask for: the model shipped for the
///   architecture, else that of sm_90 as a share of the roofline.
/// - other kernels: a roofline of FP32 and memory, with a launch, and of what
///   its text asks for (DagNode::asks) of instructions, lines and sectors; a
///   share of it where a launch has fewer blocks than the device has
///   multiprocessors, or threads with fewer loads than keep memory busy.
/// - copies: the slower link between the two ends.
class Machine final : public LatencyEstimator {
public:
  explicit Machine(device::Topology topology,
                   std::shared_ptr<const CollectiveTable> table = nullptr,
                   bool choosesAlgorithms = true);

  double durationUs(const Dag &dag, NodeId node) const override;
  /// A launch of `dag` that is like `node`, in another configuration, say.
  double launchedUs(const Dag &dag, const DagNode &node) const {
    return kernel(dag, node).us * node.timeFactor;
  }
  Origin origin(const Dag &dag, NodeId node) const override;
  double error(const Dag &dag, NodeId node) const override {
    return isHost() ? estimate(dag, node).error : 0;
  }
  std::string name() const override;
  Estimate estimate(const Dag &dag, NodeId node) const;
  /// A collective of `ranks` >= 2, `ranks / nodes` on each node.
  Estimate collective(CollectiveKind kind, double bytes, uint32_t ranks,
                      uint32_t nodes) const;

  /// With all rates of work on it, also those it was made without.
  const device::Topology &topology() const { return about; }
  /// Virtual devices of the host, which share its memory.
  bool isHost() const { return about.link.kind == device::LinkKind::Memory; }
  /// The machine with times measured of the nodes of one DAG; empty: none.
  Machine withTimes(NodeTimes measured) const;
  size_t numMeasured() const;
  /// The tables and times on another topology.
  Machine on(device::Topology other) const {
    return Machine(std::move(other), table, choosesAlgorithms).withTimes(times);
  }
  /// The machine with every collective by ring Simple where NCCL is estimated.
  Machine withoutAlgorithms() const {
    Machine out = *this;
    out.choosesAlgorithms = false;
    out.known.clear();
    return out;
  }
  /// A collective as the estimates ask for it; nothing of other nodes.
  struct Asked {
    CollectiveKind kind = CollectiveKind::AllReduce;
    double bytes = 0;
    uint32_t ranks = 0, nodes = 1;
  };
  std::optional<Asked> asked(const Dag &dag, const DagNode &node) const;
  /// The time of each of NCCL's algorithms for a collective by its own
  /// estimate, the fastest first; empty of other nodes, and of collectives that
  /// are sends and receives.
  std::vector<NcclTime> algorithms(const Dag &dag, NodeId node) const;
  /// Everything used beside the tables and curves.
  std::vector<Coefficient> coefficients() const;

private:
  struct Shares;
  Shares shares() const;
  Estimate unscaled(const Dag &dag, const DagNode &node) const;
  Estimate onHost(const Dag &dag, const DagNode &node) const;
  Estimate onMeasuredHost(const Dag &dag, const DagNode &node) const;
  std::vector<Coefficient> hostCoefficients() const;
  Estimate kernel(const Dag &dag, const DagNode &node) const;
  /// By the calibration's pairs; nothing where it has not these.
  std::optional<Estimate> sendBetween(DeviceId from, DeviceId to,
                                      double bytes) const;
  Estimate copy(const Dag &dag, const CopyCall &call) const;
  uint32_t nodeOf(DeviceId device) const;
  uint32_t nodesOf(const std::vector<DeviceId> &devices) const;

  device::Topology about;
  std::shared_ptr<const CollectiveTable> table;
  bool choosesAlgorithms;
  NodeTimes times;
  /// The rates of a host that was calibrated; else null.
  std::shared_ptr<const HostRates> hostRates;
  using Key = std::tuple<CollectiveKind, double, uint32_t, uint32_t>;
  mutable std::map<Key, Estimate> known; ///< a program repeats its collectives
};

/// The host as the machine of its virtual devices. All its rates are assumed.
Machine hostMachine(uint32_t devices = 1 << 16);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_COST_TARGETMACHINE_H

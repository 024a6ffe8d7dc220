// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_GRAPH_COMMUNICATION_H
#define MGPU_CAPTURE_GRAPH_COMMUNICATION_H

// A program whose devices are in several processes: every process builds its
// devices' part of the same plan. The parts meet in communications alone:
// collectives, send and recv, and copies between processes, which become a send
// and a recv. Work of the host alone is done by the process of device 0. Host
// memory is shared by all, or each has its own (device::DevicePart). Then a
// copy of what the program writes there may be a communication, too.

#include "device/api/GraphDriver.h"
#include "planner/dag/Dag.h"

#include <span>

namespace mgpu::capture {

/// Whether several devices take part in a node.
bool isCommunication(const planner::DagNode &node);

/// Whether the process of `device` has a part of a node.
bool isOn(const planner::DagNode &node, DeviceId device);

/// The part of a program that one process builds: all, or its devices' part.
class GraphPart {
public:
  GraphPart(const planner::Dag &dag, std::optional<device::DevicePart> part);
  bool isAll() const { return !part; }
  /// Whether processes have memory of the host of their own.
  bool hasOwnHost() const { return part && !part->sharesHost; }
  bool holds(DeviceId device) const { return !part || part->holds(device); }
  /// Whether a buffer is here: a device's where the device is; of the host's
  /// own memory what the program writes in one process, and what it only reads
  /// in each that reads it.
  bool holds(planner::BufferId buffer) const {
    return !part || isHeld[buffer.value];
  }
  /// Whether the process does something for a node.
  bool takesPart(const planner::DagNode &node) const;
  /// Whether that is a part of what several do together.
  bool isCommunication(const planner::DagNode &node) const;

private:
  /// The devices, the host among them, that a node needs the memory of.
  std::vector<DeviceId> placesOf(const planner::DagNode &node) const;
  void findBuffers();

  const planner::Dag &dag;
  const std::optional<device::DevicePart> part;
  // By BufferId, of a part alone.
  std::vector<bool> isWritten, isHeld;
};

/// The devices of the communicator that does a communication: of a collective
/// its members, in rank order; of sends, recvs and copies all devices.
std::vector<DeviceId> communicatorOf(const planner::Dag &dag,
                                     const planner::DagNode &node);

/// Whether two communicators must never run at once unless all ranks start them
/// in one order: two ranks that are in both could each wait for the other in
/// the one they started first.
bool shareTwoRanks(std::span<const DeviceId> a, std::span<const DeviceId> b);

/// The lists of members that communicate, in rank order: all devices first,
/// which sends and recvs use, then those of the collectives as they come.
std::vector<std::vector<DeviceId>> communicatingGroups(const planner::Dag &dag);

/// Unsupported, with both source lines, where within a phase a node of one
/// process needs what one of another does: nothing but a communication makes
/// one GPU wait for another. Phases and trips of a loop follow each other
/// whole on all GPUs.
Result<void> checkAcrossRanks(const planner::Dag &dag);
/// Refuses programs that processes with host memory of their own cannot run: a
/// kernel of another device than 0 works on data that the program writes there.
/// All processes get the same error.
Result<void> checkAcrossHosts(const planner::Dag &dag);
/// Unsupported where an argument lies on a device: no process has another's.
Result<void> checkAcrossProcesses(const planner::Dag &dag);
/// Both of GPUs in processes of their own: checkAcrossRanks() and
/// checkAcrossProcesses().
Result<void> checkAcrossGpus(const planner::Dag &dag);

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_GRAPH_COMMUNICATION_H

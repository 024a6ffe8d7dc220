// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_GRAPH_COMMUNICATION_H
#define MGPU_CAPTURE_GRAPH_COMMUNICATION_H

// A program whose devices are in several processes, one in each: every process
// builds its device's part of the same plan. The parts meet in communications
// alone: collectives, send and recv, and copies between devices, which become
// a send and a recv. Host memory is shared by all; work of the host alone is
// done by the process of device 0.

#include "planner/dag/Dag.h"

#include <span>

namespace mgpu::capture {

/// Whether several devices take part in a node.
bool isCommunication(const planner::DagNode &node);

/// Whether the process of `device` has a part of a node.
bool isOn(const planner::DagNode &node, DeviceId device);

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

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_GRAPH_COMMUNICATION_H

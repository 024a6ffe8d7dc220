// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_COST_HOSTWORK_H
#define MGPU_PLANNER_COST_HOSTWORK_H

// Counts what a node asks of a core of the host. `calibrate` counts its kernels
// by it and HostRates.h a program's, so that both mean the same.

#include "planner/dag/Dag.h"

#include <map>
#include <string>

namespace mgpu::planner {

/// How often a launch does what:
/// - "launch", "block": begins.
/// - "operation", and "exp", "divide.int", ...: of elements, by function;
///   "scalar": of a row of threads as one.
/// - "access": loads and stores of neighbours by neighbours; "common": of one
///   place by a row; "turned": apart, but one after the other in a loop;
///   "strided.0" to "strided.2" and "gather.0" to "gather.2":
///   apart, and nobody knows where, in buffers of 64 KiB, 4 MiB and 128 MiB;
///   what lies between counts in shares.
/// - "reduction", "exchange", "shared": within blocks and subgroups, and of
///   memory that is not a buffer.
/// Elements of a row of threads count as vectors of eight, and those that do
/// not fill one as a vector each.
using HostCounts = std::map<std::string, double>;

/// Rows of more bytes are about memory; a second-level cache has these.
inline constexpr double hostNearBytes = 0x1p19;

/// Counts a kernel's launch by its facts; without them, by its counts of
/// operations and bytes. Matrix products have no counts but "launch".
HostCounts hostCounts(const Dag &dag, const DagNode &node);

/// The product of matrices that a launch is; none: it is another kernel.
std::optional<Product> hostProduct(const Dag &dag, const DagNode &node);

/// Bytes of the buffers of a program, which its replays go through. A program
/// of more than a thousand buffers is judged by as many of them.
double footprintOf(const Dag &dag);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_COST_HOSTWORK_H

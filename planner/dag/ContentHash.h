// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_DAG_CONTENTHASH_H
#define MGPU_PLANNER_DAG_CONTENTHASH_H

#include "planner/dag/Dag.h"

namespace mgpu::planner {

/// SHA-256 of what the DAG does: its nodes with their work and devices, its
/// buffers, edges and kernels. Names and places in files do not count.
std::string contentHash(const Dag &dag);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_DAG_CONTENTHASH_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_PIPELINEREPORT_H
#define MGPU_PLANNER_SCHEDULE_PIPELINEREPORT_H

// Reports what a plan means for a program over several meshes: how much of the
// time each has nothing to do, how much memory it needs, and what is moved.

#include "planner/dag/Shardings.h"
#include "planner/plan/Plan.h"

namespace mgpu::planner {

struct PipelineReport {
  struct Mesh {
    std::string name;
    /// The share of the time, from the first start of a kernel or collective of
    /// any mesh to the last end of one, in which a device runs neither; the
    /// mean of the mesh's devices.
    double bubble = 0;
    uint64_t peakBytes = 0; ///< of its fullest device
  };
  struct Transfer {
    std::string from, to; ///< meshes
    uint64_t copies = 0, bytes = 0;
  };
  double bubble = 0; ///< the mean of all devices
  std::vector<Mesh> meshes;
  std::vector<Transfer> transfers;
  uint64_t transferBytes = 0;
  uint64_t hostBytes = 0; ///< between hosts and devices, within a replay
};

PipelineReport reportPipeline(const Plan &plan, const Dag &dag,
                              const std::vector<MeshDevices> &meshes);
std::string toText(const PipelineReport &report);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_PIPELINEREPORT_H

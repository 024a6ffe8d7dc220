// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_DAG_MESHDEVICES_H
#define MGPU_PLANNER_DAG_MESHDEVICES_H

#include <cstdint>
#include <string>

namespace mgpu::planner {

/// The devices of a mesh, as a program over several meshes names it.
struct MeshDevices {
  std::string name;
  uint32_t first = 0, count = 0;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_DAG_MESHDEVICES_H

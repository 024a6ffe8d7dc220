// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_DAG_SHARDINGS_H
#define MGPU_PLANNER_DAG_SHARDINGS_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mgpu::planner {

/// How a tensor is cut: by dimension, the axes of a grid that cut it.
using Split = std::vector<std::vector<int64_t>>;

/// An argument of a program over whole tensors.
struct ShardedArgument {
  std::string name;
  std::vector<int64_t> shape;
  std::optional<Split> split; ///< as the program annotates it
};

/// The shardings that an annotated program gives its arguments.
struct Shardings {
  std::vector<int64_t> grid; ///< empty where it is not of one shard.grid
  std::vector<ShardedArgument> arguments; ///< those that are tensors
  std::string text; ///< of the program, where it was asked for
};

/// The devices of a mesh, as a program over several meshes names it.
struct MeshDevices {
  std::string name;
  uint32_t first = 0, count = 0;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_DAG_SHARDINGS_H

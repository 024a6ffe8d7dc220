// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_DAG_SHARDINGS_H
#define MGPU_PLANNER_DAG_SHARDINGS_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mgpu::planner {

/// How a tensor is cut: by dimension, the axes of a grid that cut it.
using Split = std::vector<std::vector<int64_t>>;

/// Holds the devices and the cuts of arguments that the user asks for.
struct GivenShardings {
  std::string grid; ///< sizes of the program's shard.grid, as `2x4`
  std::string mesh; ///< axes for a program without, as `data=4,model=2`
  /// Names of arguments, in which `*` is any letters, and for each of their
  /// dimensions the axes that cut it, as `data,-`. A name goes before a
  /// pattern, a later one before an earlier.
  std::vector<std::pair<std::string, std::string>> cuts = {};
  /// How arguments are cut, by name; these go before `cuts`.
  std::map<std::string, Split> splits = {};
};

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

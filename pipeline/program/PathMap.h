// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PROGRAM_PATHMAP_H
#define MGPU_PIPELINE_PROGRAM_PATHMAP_H

// The paths that a bundle holds, so that equal programs give equal bytes
// wherever they are.

#include "planner/dag/Dag.h"

#include <map>
#include <string>

namespace mgpu::pipeline {

class PathMap {
public:
  /// `prefixes`: a path that begins with a key has the value in its place; the
  /// longest key wins. Other paths in the folder of `programFile` lose that
  /// folder.
  PathMap(const std::string &programFile,
          const std::map<std::string, std::string> &prefixes);

  /// "mlp.mlir:3:5" for "/home/me/mlp.mlir:3:5" in the program's own folder.
  std::string operator()(const std::string &path) const;
  /// `text` of MLIR or C++; its locations, `"path":line:column` and
  /// `#line N "path"`, are mapped.
  std::string inText(const std::string &text) const;
  /// The places of nodes and kernels, and of the operations in kernels' texts.
  void apply(planner::Dag &dag) const;

private:
  std::map<std::string, std::string> prefixes;
};

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_PROGRAM_PATHMAP_H

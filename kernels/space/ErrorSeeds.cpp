// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/space/ErrorSeeds.h"

namespace mgpu::kernels {

planner::Dag withErrorSeeds(planner::Dag dag, std::optional<unsigned> trial) {
  for (planner::KernelSpec &kernel : dag.kernels)
    ++kernel.numArguments;
  for (size_t k = 0; k < dag.nodes.size(); ++k)
    if (auto *call = std::get_if<planner::KernelCall>(&dag.nodes[k].work))
      call->arguments.push_back({trial ? errorSeed(*trial, k + 1) : 0, 0});
  return dag;
}

} // namespace mgpu::kernels

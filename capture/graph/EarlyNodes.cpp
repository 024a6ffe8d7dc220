// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/graph/EarlyNodes.h"

#include <algorithm>

namespace mgpu::capture {

using namespace planner;

EarlyNodes EarlyNodes::of(std::span<const device::KernelHandle> kernels,
                          const device::Driver &driver) {
  EarlyNodes early;
  for (device::KernelHandle kernel : kernels)
    early.kernels.push_back(driver.awaits(kernel));
  if (std::find(early.kernels.begin(), early.kernels.end(), true) !=
      early.kernels.end())
    early.copyBytes = driver.earlyCopyBytes();
  return early;
}

bool EarlyNodes::isLaunch(const Dag &dag, const DagNode &node) const {
  if (std::holds_alternative<KernelCall>(node.work))
    return true;
  const auto *copy = std::get_if<CopyCall>(&node.work);
  if (!copy || copy->source.value >= dag.buffers.size() ||
      copy->destination.value >= dag.buffers.size())
    return false;
  const DeviceId from = dag.buffer(copy->source).device;
  return !from.isHost() && from == dag.buffer(copy->destination).device &&
         uint64_t(copy->sourceBox.numElements()) *
                 copy->sourceBox.elementBytes <=
             copyBytes;
}

bool EarlyNodes::waits(const Dag &dag, const DagNode &node) const {
  if (const auto *call = std::get_if<KernelCall>(&node.work))
    return call->kernel.value < kernels.size() && kernels[call->kernel.value];
  return isLaunch(dag, node);
}

} // namespace mgpu::capture

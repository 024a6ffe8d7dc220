// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/build/PredictKernels.h"

#include "kernels/compile/CudaConfig.h"
#include "tuner/space/PredictedOrder.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::pipeline {

using planner::DagNode, planner::KernelCall;

/// No more are looked at, the first ones of a larger space.
static constexpr uint64_t mostConfigs = 1'000'000;

/// Null: there is none.
static const DagNode *largestLaunch(const planner::Dag &dag, uint32_t kernel) {
  const DagNode *largest = nullptr;
  uint64_t most = 0;
  for (const DagNode &node : dag.nodes)
    if (auto *call = std::get_if<KernelCall>(&node.work);
        call && call->kernel.value == kernel && call->grid.volume() > most) {
      largest = &node;
      most = call->grid.volume();
    }
  return largest;
}

std::vector<double>
predictConfigs(const LoadedProgram &program, const planner::Machine &machine,
               uint32_t kernel, const kernels::CudaText &text,
               std::span<const kernels::KernelConfig> configs) {
  const planner::KernelSpec &spec = program.dag.kernels[kernel];
  const DagNode *launch = largestLaunch(program.dag, kernel);
  if (!launch || spec.cudaFile())
    return std::vector<double>();
  const auto works = kernels::launchWorkOf(spec, text, configs);
  if (!spec.product() &&
      std::ranges::none_of(works, [](const auto &each) { return bool(each); }))
    return std::vector<double>();
  const bool isOnTensorCores =
      text.form == "tensor_cores" || text.form == "wgmma";
  DagNode node = *launch;
  std::vector<double> us;
  for (const auto &work : works) {
    node.asks = work;
    node.isMatmul = work && isOnTensorCores;
    us.push_back(machine.launchedUs(program.dag, node));
  }
  return us;
}

std::optional<PredictedKernel> predictKernel(const LoadedProgram &program,
                                             const planner::Machine &machine,
                                             uint32_t kernel,
                                             const kernels::CudaText &text,
                                             const device::DeviceProfile *gpu) {
  if (!text.space)
    return std::nullopt;
  const kernels::KernelSpace &space = *text.space;
  std::vector<kernels::KernelConfig> configs =
      (gpu ? kernels::onDevice(space, *gpu) : space).legal(mostConfigs);
  configs.push_back(space.defaults);
  const std::vector<double> us =
      predictConfigs(program, machine, kernel, text, configs);
  if (us.empty())
    return std::nullopt;
  const size_t best =
      tuner::fastestPredicted(configs, us, space.defaults, 1).front();
  return PredictedKernel{us.back(), us[best], configs[best]};
}

} // namespace mgpu::pipeline

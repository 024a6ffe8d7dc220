// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/build/KernelListing.h"

#include "device/cuda/api/Libraries.h"
#include "kernels/compile/CudaConfig.h"
#include "kernels/space/Occupancy.h"
#include "pipeline/build/Kernels.h"
#include "tuner/space/PredictedOrder.h"

#include <fmt/format.h>

#include <algorithm>

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

static Survey survey(const kernels::KernelSpace &space,
                     const device::DeviceProfile *gpu) {
  Survey result;
  result.legal = (gpu ? kernels::onDevice(space, *gpu) : space)
                     .legal(UINT64_MAX, &result.refused)
                     .size();
  return result;
}

static Result<void> measure(Listed &listed,
                            const kernels::CompiledText &compiled,
                            const device::DeviceProfile *gpu) {
  const kernels::CudaText &text = *listed.text;
  listed.usage = compiled.usage;
  listed.spill = listed.usage->spillStoreBytes + listed.usage->spillLoadBytes;
  listed.shared = listed.usage->sharedBytes + text.image.dynamicSharedBytes;
  if (!gpu)
    return {};
  MGPU_TRY_ASSIGN(kernels::Occupancy found,
                  kernels::occupancyOf(*listed.usage,
                                       uint32_t(text.image.block.volume()),
                                       text.image.dynamicSharedBytes, *gpu));
  listed.occupancy = found.fraction;
  return {};
}

void KernelListing::add(size_t kernel, const kernels::CudaText &text,
                        const Result<kernels::CudaText> &emitted) {
  Listed &listed = all.emplace_back();
  listed.text = &text;
  listed.kernel = kernel;
  if (!emitted)
    listed.error = emitted.error();
  // A configuration in use is compiled, and fails where it cannot be.
  std::string refusal =
      text.disabled.empty() ? "" : kernels::archRefusal(text, arch);
  const bool isFor = refusal.empty();
  listed.disabled =
      isFor || text.image.blob.empty() ? text.disabled : std::move(refusal);
  if (text.image.product && text.form == "cublaslt" &&
      texts[kernel].image.product) {
    // Whether it is used is known only where the GPU is; here, this machine is
    // asked.
    auto library = device::findCublasLt();
    listed.isUsed = library.has_value();
    listed.disabled = library
                          ? fmt::format("used in its kernel's place, where a "
                                        "GPU has it (here {})",
                                        library->version)
                          : library.error().message;
  }
  if (!text.image.blob.empty() && isFor)
    compiled.push_back(all.size() - 1);
}

void KernelListing::list(
    const std::vector<Result<kernels::CudaText>> &emitted) {
  for (size_t k = 0; k < emitted.size(); ++k) {
    const planner::KernelSpec &spec = program.dag.kernels[k];
    kernels::CudaText none;
    none.name = spec.name;
    none.image.sourceBlock = none.image.block = spec.block;
    texts.push_back(emitted[k] ? *emitted[k] : std::move(none));
  }
  for (size_t k = 0; k < texts.size(); ++k) {
    add(k, texts[k], emitted[k]);
    for (const kernels::CudaText &candidate : texts[k].candidates)
      add(k, candidate, emitted[k]);
  }
}

void KernelListing::checkLaunches() {
  std::erase_if(compiled, [&](size_t k) {
    const kernels::CudaText &text = *all[k].text;
    Result<void> fits;
    if (gpu && text.space)
      fits = kernels::onDevice(*text.space, *gpu).check(text.space->defaults);
    if (!fits)
      all[k].error =
          errorAt(program.dag.kernels[all[k].kernel].location,
                  Error{fits.error().kind,
                        fmt::format("kernel '{}' as it is launched has {}",
                                    text.name, fits.error().message)});
    return !fits;
  });
}

void KernelListing::predict(const planner::Machine &machine) {
  for (Listed &listed : all)
    if (!listed.error && !listed.text->image.blob.empty() &&
        kernels::archRefusal(*listed.text, arch).empty())
      listed.predicted = predictKernel(
          program, machine, uint32_t(listed.kernel), *listed.text, gpu);
}

Result<void> KernelListing::compile(device::BlobCache *cache,
                                    uint64_t seconds) {
  std::vector<kernels::CudaText> sources;
  for (size_t k : compiled)
    sources.push_back(*all[k].text);
  MGPU_TRY_ASSIGN(results, kernels::compileTexts(sources, arch, cache,
                                                 compileLimits(seconds)));
  for (size_t c = 0; c < compiled.size(); ++c) {
    Listed &listed = all[compiled[c]];
    if (listed.text->space)
      listed.space = survey(*listed.text->space, gpu);
    if (results[c])
      MGPU_TRY(measure(listed, *results[c], gpu));
    else
      listed.error = errorAt(program.dag.kernels[listed.kernel].location,
                             std::move(results[c].error()));
  }
  return {};
}

} // namespace mgpu::pipeline

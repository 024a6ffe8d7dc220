// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/host/PtxKernel.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace mgpu::device {

namespace ptx = kernels::ptx;

Result<std::shared_ptr<PtxKernel>>
PtxKernel::load(std::string_view name, std::span<const std::byte> bytes) {
  auto kernel = std::make_shared<PtxKernel>();
  MGPU_TRY_ASSIGN(kernel->image, kernels::decodeImage(name, bytes));
  const std::string before = fmt::format("kernel '{}': ", name);
  Result<ptx::Module> module = ptx::parse(kernel->image.blob);
  if (!module)
    return failIn(before, module.error());
  auto program = ptx::decode(std::make_shared<ptx::Module>(std::move(*module)),
                             kernel->image.entry);
  if (!program)
    return failIn(before, program.error());
  kernel->program = std::make_shared<ptx::Program>(std::move(*program));
  return kernel;
}

Result<ptx::LaunchOptions>
PtxKernel::launchOf(const KernelNodeParams &params) const {
  const std::vector<ptx::Parameter> &taken = program->parameters;
  if (taken.size() != params.arguments.size())
    return fail(ErrorKind::Invalid,
                fmt::format("node '{}': the PTX of '{}' takes {} parameters, "
                            "and the launch gives {}",
                            params.name, image.entry, taken.size(),
                            params.arguments.size()));
  if (params.part && *params.part != GridPart::whole(params.grid))
    return fail(ErrorKind::Invalid,
                fmt::format("node '{}' runs a part of a grid, which a kernel "
                            "given as PTX does not",
                            params.name));
  ptx::LaunchOptions options;
  options.grid = params.grid;
  options.block = image.block;
  options.cluster = image.cluster;
  const auto &needed = program->cluster;
  if (image.cluster == Dim3{} && needed[0])
    options.cluster = {needed[0], needed[1], needed[2]};
  options.sharedBytes = image.dynamicSharedBytes;
  options.parameters.resize(program->parameterBytes);
  for (size_t k = 0; k < taken.size(); ++k)
    std::memcpy(options.parameters.data() + taken[k].offset,
                &params.arguments[k], std::min(taken[k].bytes, 8u));
  for (const KernelMemory &memory : params.memory) {
    ptx::Region region;
    region.at = memory.base;
    region.bytes = memory.bytes;
    region.isWritable = memory.isWritten;
    region.name = fmt::format("buffer '{}'", memory.name);
    options.regions.push_back(std::move(region));
  }
  return options;
}

Result<void> PtxKernel::run(DeviceId device,
                            const ptx::LaunchOptions &options) {
  OnDevice *own = nullptr;
  {
    const std::lock_guard guard(lock);
    own = &devices[device.value];
  }
  const std::lock_guard guard(own->lock);
  if (!own->instance)
    own->instance = std::make_unique<ptx::Instance>(program);
  MGPU_TRY(ptx::run(*own->instance, options));
  return {};
}

} // namespace mgpu::device

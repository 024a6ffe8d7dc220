// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/c/OpenedBundle.h"

#include "device/cuda/CudaTarget.h"
#include "device/cuda/Libraries.h"
#include "device/host/CpuLevel.h"
#include "device/host/HostTarget.h"
#include "kernels/compile/CudaObjects.h"
#include "kernels/compile/NvrtcCompiler.h"
#include "planner/plan/Workspace.h"

#include <fmt/format.h>

namespace mgpu::capture {

Result<std::unique_ptr<OpenedBundle>>
OpenedBundle::open(const std::string &path, const std::string &target) {
  MGPU_TRY_ASSIGN(Bundle bundle, Bundle::open(path));
  std::unique_ptr<OpenedBundle> out(new OpenedBundle);
  MGPU_TRY_ASSIGN(out->plan, bundle.plan());
  out->theProgram = bundle.program();
  const std::string kind = target.substr(0, target.find(':'));
  if (!kind.empty() && kind != "host" && kind != "cuda")
    return fail(ErrorKind::Usage,
                fmt::format("unknown target '{}'; use host, host:N, cuda, "
                            "cuda:K or cuda:K/N",
                            target));
  MGPU_TRY(device::isCudaTarget(target) ? out->openCard(bundle, target)
                                        : out->openHost(bundle, target));
  return out;
}

Result<void> OpenedBundle::openHost(Bundle &bundle, const std::string &target) {
  MGPU_TRY_ASSIGN(driver,
                  device::openHostTarget(target, theProgram.dag.numDevices,
                                         bundle.threads()));
  std::vector<std::string_view> levels = device::cpuLevels();
  MGPU_TRY_ASSIGN(auto kernels, bundle.hostKernels(levels));
  MGPU_TRY_ASSIGN(replayer, Replayer::create(theProgram.dag, plan,
                                             kernels.objects, *driver));
  return {};
}

Result<std::vector<std::vector<std::byte>>>
OpenedBundle::takeCubins(Bundle &bundle, const std::string &arch) {
  MGPU_TRY_ASSIGN(auto cubins, bundle.cubins(arch));
  MGPU_TRY_ASSIGN(auto texts, bundle.cudaTexts());
  kernels::CudaObjects kernels = kernels::cudaObjects(
      texts, std::move(cubins), arch,
      kernels::hasProducts(texts) && device::findCublasLt());
  planner::addWorkspaces(theProgram.dag, plan, kernels.workspaceBytes);
  return std::move(kernels.objects);
}

Result<void> OpenedBundle::openCard(Bundle &bundle, const std::string &target) {
  MGPU_TRY_ASSIGN(device::CudaTarget card,
                  device::oneCard(target, theProgram.dag.numDevices));
  device::CudaOptions options;
  options.card = card.cards[0];
  options.numDevices = card.devicesOnCard;
  options.compile = [](auto &...what) {
    return kernels::compileCubin(what...);
  };
  MGPU_TRY_ASSIGN(driver, device::createCudaDriver(options));
  MGPU_TRY_ASSIGN(auto kernels, takeCubins(bundle, driver->architecture()));
  MGPU_TRY_ASSIGN(replayer,
                  Replayer::create(theProgram.dag, plan, kernels, *driver));
  return {};
}

} // namespace mgpu::capture

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/conformance/CudaPrograms.h"

#include "pipeline/compiler/KernelBuild.h"
#include "planner/dag/LaunchFacts.h"
#include "tests/unit/cuda/FakeCublasLt.h"
#include "tests/unit/cuda/Ranks.h"

#include <algorithm>
#include <cstring>

namespace mgpu::conformance {

Result<size_t> CudaPrograms::add(const planner::Dag &dag,
                                 std::mt19937_64 &random) {
  const auto facts = planner::launchFacts(dag);
  std::vector<std::vector<std::byte>> objects;
  std::vector<uint64_t> needed;
  for (size_t k = 0; k < dag.kernels.size(); ++k) {
    const planner::KernelSpec &spec = dag.kernels[k];
    std::string entry = "e" + std::to_string(twins.configs.size());
    kernels::CudaEmitOptions options{spec.name,          "",
                                     spec.block,         facts[k].maxGrid,
                                     facts[k].alignment, facts[k].unwritten};
    MGPU_TRY_ASSIGN(kernels::CudaKernel kernel,
                    kernels::emitCudaText(spec, options));
    MGPU_TRY_ASSIGN(kernels::KernelSpace space,
                    kernels::kernelSpaceOf(spec, facts[k].maxGrid,
                                           kernels::KernelTarget::Cuda));
    std::vector<kernels::KernelConfig> corners =
        kernels::cornersOf(space, 8, "sm_80");
    kernels::KernelConfig config =
        corners.empty() ? space.defaults : corners[random() % corners.size()];
    kernels::KernelImage object;
    object.entry = entry;
    object.arch = "sm_90";
    object.sourceBlock = spec.block;
    object.block = config.block();
    object.covers = space.covered(config);
    object.cluster.x = config[kernels::KernelParameter::ClusterX];
    object.takesPart = kernel.image.takesPart;
    object.awaits = twins.onAwait && kernel.image.takesPart;
    object.tensorMaps = kernel.image.tensorMaps;
    object.argumentAlignment = kernel.image.argumentAlignment;
    if (useCublasLt && spec.product())
      object.product = kernels::libraryProduct(**spec.hostText());
    constexpr uint64_t enough = 8192; // for FakeCublasLt
    object.workspaceBytes = object.product ? enough : 0;
    needed.push_back(object.workspaceBytes);
    object.setBytes(fake::fakeCubin({entry}));
    kernels::TwinConfig twin{entry, std::move(kernel), std::move(space),
                             config};
    object.dynamicSharedBytes = twin.dynamicSharedBytes();
    objects.push_back(kernels::encodeImage(object));
    twins.add(std::move(twin));
  }
  programs.push_back(std::move(objects));
  workspaceBytes.push_back(std::move(needed));
  return programs.size() - 1;
}

void CudaPrograms::registerKernels(uint64_t seed) const {
  fake::FakeCuda &machine = fake::freshMachine(seed);
  for (const kernels::TwinConfig &config : twins.configs) {
    const std::string &entry = config.entry;
    fake::FakeKernel &kernel = machine.kernels[entry];
    kernel.parameterSizes = twins.parameterSizes(entry);
    std::vector<size_t> sizes = kernel.parameterSizes;
    constexpr size_t launchBytes = 12 * sizeof(unsigned);
    const bool takesPart = config.kernel.image.takesPart;
    if (takesPart)
      kernel.parameterSizes.push_back(launchBytes);
    kernel.run = [this, entry, sizes, takesPart](void **parameters,
                                                 const unsigned *grid,
                                                 const unsigned *block) {
      std::vector<uint64_t> arguments(sizes.size());
      for (size_t k = 0; k < sizes.size(); ++k)
        if (sizes[k] == kernels::tensorMapBytes)
          arguments[k] = uintptr_t(parameters[k]);
        else
          std::memcpy(&arguments[k], parameters[k], sizes[k]);
      unsigned launch[12] = {};
      if (takesPart)
        std::memcpy(launch, parameters[sizes.size()], sizeof launch);
      twins.launch(entry, arguments, launch, grid, block);
    };
  }
}

Result<std::unique_ptr<device::Driver>>
CudaPrograms::open(uint32_t numDevices, uint64_t seed) const {
  registerKernels(seed);
  fake::FakeCublasLt::reset();
  auto library = [] {
    return Result<std::shared_ptr<const device::CublasLtApi>>(
        fake::FakeCublasLt::api());
  };
  return fake::openFake(fake::fakeOptions(numDevices),
                        useCublasLt ? device::CublasLtOpener(library)
                                    : nullptr);
}

Result<std::unique_ptr<device::Driver>>
CudaPrograms::openRank(uint32_t rank, uint64_t seed,
                       std::function<Result<void>()> watch,
                       std::chrono::milliseconds deadline) const {
  registerKernels(seed + rank);
  fake::FakeNccl::reset();
  device::CudaOptions options = fake::rankOptions(rank);
  options.watch = std::move(watch);
  options.deadline = deadline;
  options.nccl.windows = useWindows;
  return fake::openRank(options);
}

void CudaPrograms::readyThreads(uint32_t gpus, uint64_t seed) const {
  setenv("NCCL_GRAPH_MIXING_SUPPORT", "0", 1);
  registerKernels(seed);
  fake::FakeCuda::instance().gpus = int(gpus);
  fake::FakeNccl::reset();
}

Result<std::unique_ptr<device::Driver>>
CudaPrograms::openThread(uint32_t rank, std::function<Result<void>()> watch,
                         uint32_t first) const {
  device::CudaOptions options = fake::rankOptions(first + rank, int(rank));
  options.watch = std::move(watch);
  options.nccl.windows = useWindows;
  return fake::openThread(options);
}

} // namespace mgpu::conformance

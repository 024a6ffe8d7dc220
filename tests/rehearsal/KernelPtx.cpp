// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/rehearsal/KernelPtx.h"

#include "kernels/ptx/Launch.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace mgpu::rehearsal {

namespace ptx = kernels::ptx;

namespace {

CUresult lastFault = CUDA_SUCCESS;

/// All that the GPUs may touch. What a kernel that is awaited writes is ready
/// behind griddepcontrol.wait alone.
std::vector<ptx::Region> allMemory() {
  const fake::FakeCuda &fake = fake::FakeCuda::instance();
  std::vector<ptx::Region> regions;
  auto add = [&](uint64_t address, size_t bytes, const char *name) {
    ptx::Region region;
    region.at = reinterpret_cast<std::byte *>(address);
    region.bytes = bytes;
    region.name = name;
    region.isSteady = false;
    regions.push_back(std::move(region));
  };
  for (const auto &[address, memory] : fake.deviceMemory)
    add(address, memory.bytes, "an allocation of the GPU");
  for (const auto &[address, memory] : fake.hostMemory)
    add(address, memory.bytes, "an allocation of the host");
  return regions;
}

void launch(ptx::Instance &instance, void **parameters, const unsigned *grid,
            const unsigned *block) {
  const ptx::Program &program = *instance.program;
  ptx::LaunchOptions options;
  options.grid = {grid[0], grid[1], grid[2]};
  options.block = {block[0], block[1], block[2]};
  if (program.cluster[0])
    options.cluster = {program.cluster[0], program.cluster[1],
                       program.cluster[2]};
  options.sharedBytes = fake::FakeCuda::instance().dynamicSharedBytes;
  options.parameters.resize(program.parameterBytes);
  for (size_t k = 0; k < program.parameters.size(); ++k)
    std::memcpy(options.parameters.data() + program.parameters[k].offset,
                parameters[k], program.parameters[k].bytes);
  options.regions = allMemory();
  options.print = [](std::string_view text) {
    fake::FakeCuda::instance().print(text);
  };
  options.awaitGrids = [] { fake::FakeCuda::instance().awaitGrids(); };
  if (fake::FakeCuda::instance().watchesOrder)
    options.onTouch = [](uint64_t address, uint32_t bytes, bool writes) {
      fake::FakeCuda::instance().touched(address, bytes, writes);
    };
  // No kernel of the rehearsal takes longer.
  options.mostInstructions = uint64_t(1) << 30;
  const auto result = ptx::run(instance, options);
  lastFault = result ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
  if (result)
    return;
  const std::string sentence =
      "kernel '" + program.entry + "': " + result.error().message;
  std::fprintf(stderr, "rehearsal: %s\n", sentence.c_str());
  if (sentence.find("its limit") != std::string::npos)
    fake::FakeCuda::instance().neverEnds = true;
  else
    fake::FakeCuda::instance().violations.push_back(sentence);
}

} // namespace

Result<std::map<std::string, fake::FakeKernel>>
kernelsOfPtx(std::string text, const std::vector<std::string> &entries) {
  MGPU_TRY_ASSIGN(ptx::Module parsed, ptx::parse(std::move(text)));
  const auto module = std::make_shared<ptx::Module>(std::move(parsed));
  std::map<std::string, fake::FakeKernel> out;
  for (const std::string &entry : entries) {
    MGPU_TRY_ASSIGN(ptx::Program program, ptx::decode(module, entry));
    fake::FakeKernel &kernel = out[entry];
    for (const ptx::Parameter &each : program.parameters)
      kernel.parameterSizes.push_back(each.bytes);
    auto instance = std::make_shared<ptx::Instance>(
        std::make_shared<ptx::Program>(std::move(program)));
    kernel.run = [instance](void **parameters, const unsigned *grid,
                            const unsigned *block) {
      launch(*instance, parameters, grid, block);
    };
    kernel.fault = [] { return lastFault; };
  }
  return out;
}

} // namespace mgpu::rehearsal

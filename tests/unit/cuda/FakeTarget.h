// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_CUDA_FAKETARGET_H
#define MGPU_TESTS_UNIT_CUDA_FAKETARGET_H

// The CUDA target over the driver that is not there.

#include "DeviceKernelList.h"
#include "FakeCuda.h"

#include "device/cuda/OpenDriver.h"
#include "kernels/abi/KernelImage.h"

#include <cstring>

namespace mgpu::fake {

/// Compiles the target's own programs, and nothing else.
inline Result<std::vector<std::byte>> compileForFake(const std::string &source,
                                                     const std::string &name,
                                                     const std::string &arch) {
  if (arch != "sm_90")
    return fail(ErrorKind::Internal, "not the GPU's architecture: " + arch);
  for (const DeviceProgram &program : devicePrograms())
    if (program.source == source) {
      std::vector<std::string> entries;
      for (const DeviceProgram::Entry &entry : program.entries)
        entries.push_back(entry.name);
      return fakeCubin(entries);
    }
  return fail(ErrorKind::Internal, "not a program of the target: " + name);
}

/// A fresh machine, with what happens in it by `seed`.
inline FakeCuda &freshMachine(uint64_t seed = 0) {
  FakeCuda &fake = FakeCuda::reset(seed);
  registerDeviceKernels(fake);
  return fake;
}

inline device::CudaOptions fakeOptions(uint32_t numDevices) {
  device::CudaOptions options;
  options.numDevices = numDevices;
  options.compile = compileForFake;
  options.deadline = std::chrono::milliseconds(20'000);
  return options;
}

inline Result<std::unique_ptr<device::Driver>>
openFake(const device::CudaOptions &options,
         device::CublasLtOpener openProducts = nullptr) {
  auto api = std::make_shared<device::CudaApi>(*FakeCuda::api());
  MGPU_TRY(device::initializeCuda(*api));
  return device::createCudaDriver(std::move(api), options, nullptr,
                                  std::move(openProducts));
}

} // namespace mgpu::fake

#endif // MGPU_TESTS_UNIT_CUDA_FAKETARGET_H

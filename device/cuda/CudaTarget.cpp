// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/CudaTarget.h"

#include "device/cuda/api/Libraries.h"
#include "support/Number.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::device {

Result<CudaTarget> parseCudaTarget(const std::string &target) {
  auto unknown = [&] {
    return fail(ErrorKind::Usage,
                fmt::format("target '{}': the forms are cuda, cuda:K (GPU K), "
                            "cuda:K,L (several GPUs) and cuda:K/N (GPU K as "
                            "N devices, at most {})",
                            target, maxDevicesOnGpu));
  };
  CudaTarget out;
  if (target == "cuda")
    return out;
  constexpr std::string_view head = "cuda:";
  std::string_view rest = target;
  if (!rest.starts_with(head))
    return unknown();
  rest.remove_prefix(head.size());
  if (size_t slash = rest.find('/'); slash != std::string_view::npos) {
    auto devices = numberFrom<uint32_t>(rest.substr(slash + 1));
    auto gpu = numberFrom<int>(rest.substr(0, slash));
    if (!devices || *devices < 1 || *devices > maxDevicesOnGpu || !gpu ||
        *gpu < 0)
      return unknown();
    out.gpus[0] = *gpu;
    out.devicesOnGpu = *devices;
    return out;
  }
  out.gpus.clear();
  while (true) {
    size_t comma = rest.find(',');
    auto gpu = numberFrom<int>(rest.substr(0, comma));
    if (!gpu || *gpu < 0 ||
        std::find(out.gpus.begin(), out.gpus.end(), *gpu) != out.gpus.end())
      return unknown();
    out.gpus.push_back(*gpu);
    if (comma == std::string_view::npos)
      return out;
    rest.remove_prefix(comma + 1);
  }
}

bool isCudaTarget(const std::string &target) {
  return target.substr(0, target.find(':')) == "cuda";
}

Result<std::optional<std::vector<int>>> severalGpus(const std::string &target,
                                                    uint32_t numDevices) {
  using None = std::optional<std::vector<int>>;
  if (!isCudaTarget(target))
    return None();
  MGPU_TRY_ASSIGN(CudaTarget cuda, parseCudaTarget(target));
  std::vector<int> gpus = cuda.gpus;
  if (target == "cuda") // as many as it takes
    while (gpus.size() < numDevices)
      gpus.push_back(int(gpus.size()));
  if (gpus.size() == 1 || numDevices <= 1)
    return None();
  if (gpus.size() < numDevices)
    return fail(ErrorKind::Absent,
                fmt::format("the program is of {} devices, target '{}' has {} "
                            "GPUs: cuda:{}/{} makes as many of one",
                            numDevices, target, gpus.size(), gpus[0],
                            numDevices));
  gpus.resize(numDevices);
  return None(std::move(gpus));
}

Result<CudaTarget> oneGpu(const std::string &target, uint32_t numDevices) {
  MGPU_TRY_ASSIGN(CudaTarget cuda, parseCudaTarget(target));
  if (cuda.devicesOnGpu < numDevices)
    return fail(ErrorKind::Absent,
                fmt::format("the program is of {} devices, target '{}' has {}: "
                            "cuda:{}/{} makes as many of the GPU",
                            numDevices, target, cuda.devicesOnGpu, cuda.gpus[0],
                            numDevices));
  return cuda;
}

Result<std::string> architectureOf(const std::vector<int> &gpus) {
  MGPU_TRY_ASSIGN(CudaMachine machine, inspectCuda());
  MGPU_TRY(findNccl());
  std::string arch;
  for (int gpu : gpus) {
    if (size_t(gpu) >= machine.gpus.size())
      return fail(ErrorKind::Absent,
                  fmt::format("there is no GPU {}: this machine shows {} (see "
                              "nvidia-smi and CUDA_VISIBLE_DEVICES)",
                              gpu, machine.gpus.size()));
    const CudaMachine::Gpu &each = machine.gpus[size_t(gpu)];
    if (arch.empty())
      arch = each.arch;
    if (arch != each.arch)
      return fail(ErrorKind::Absent,
                  fmt::format("GPU {} ({}) is {}, GPU {} {}: choose GPUs of "
                              "one architecture",
                              gpu, each.name, each.arch, gpus[0], arch));
  }
  return arch;
}

} // namespace mgpu::device

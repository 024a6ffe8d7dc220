// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/target/GpuIdentity.h"

#include "device/cuda/CudaTarget.h"
#include "kernels/compile/NvrtcCompiler.h"
#include "support/ChildProcess.h"

#include <cstdlib>
#include <fmt/format.h>
#include <functional>
#include <nlohmann/json.hpp>

namespace mgpu::pipeline {

using device::CudaTarget;
using nlohmann::json;

/// Asks `question` of the driver: here where this process has initialised CUDA,
/// which one that it forks may not use, else in a process of its own, within a
/// minute. Its errors come back with their kind; Absent where the process
/// fails.
static Result<std::string>
askDriver(const std::function<Result<std::string>()> &question) {
  if (device::hasOpenedCuda())
    return question();
  auto handler = [&](std::span<const std::byte>) -> Outcome<Bytes> {
    Result<std::string> found = question();
    const std::string &text = found ? *found : found.error().message;
    Bytes answer{std::byte(found ? 0 : 1 + uint8_t(found.error().kind))};
    for (char c : text)
      answer.push_back(std::byte(c));
    return answer;
  };
  MGPU_TRY_ASSIGN(ChildProcess worker, ChildProcess::start(handler));
  constexpr double seconds = 60;
  auto answer = worker.ask({}, seconds);
  if (!answer)
    return fail(ErrorKind::Absent,
                fmt::format("asking the NVIDIA driver for its GPUs: the "
                            "process {}",
                            answer.error().what));
  auto code = uint8_t(answer->at(0));
  std::string text(reinterpret_cast<const char *>(answer->data()) + 1,
                   answer->size() - 1);
  if (code)
    return fail(ErrorKind(code - 1), text);
  return text;
}

static Result<device::CudaMachine::Gpu>
gpuOf(const device::CudaMachine &machine, int number) {
  if (size_t(number) < machine.gpus.size())
    return machine.gpus[size_t(number)];
  return fail(ErrorKind::Absent,
              fmt::format("there is no GPU {}: this machine shows {} (see "
                          "nvidia-smi and CUDA_VISIBLE_DEVICES)",
                          number, machine.gpus.size()));
}

static std::string textOf(const json &found) {
  return found.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// The identity as JSON, as one process tells it another.
static Result<std::string> describeGpu(const std::string &target) {
  MGPU_TRY_ASSIGN(CudaTarget cuda, device::parseCudaTarget(target));
  MGPU_TRY_ASSIGN(device::CudaMachine machine, device::inspectCuda());
  MGPU_TRY_ASSIGN(const auto gpu, gpuOf(machine, cuda.gpus[0]));
  MGPU_TRY_ASSIGN(auto compiler, kernels::NvrtcCompiler::open());
  return textOf({{"device", gpu.name},
                 {"architecture", gpu.arch},
                 {"software", fmt::format("CUDA driver {}, NVRTC {}, clocks "
                                          "{}/{} MHz",
                                          machine.driver, compiler.version(),
                                          gpu.clockKhz / 1000,
                                          gpu.memoryClockKhz / 1000)}});
}

Result<tuner::TargetIdentity> identifyGpu(const std::string &target,
                                          bool inHere) {
  auto describe = [&] { return describeGpu(target); };
  MGPU_TRY_ASSIGN(const std::string text,
                  inHere ? describe() : askDriver(describe));
  const json found = json::parse(text, nullptr, false);
  if (!found.is_object())
    return fail(ErrorKind::Internal, "the GPU's description is not read back");
  return tuner::TargetIdentity{found.value("device", ""),
                               found.value("architecture", ""),
                               found.value("software", "")};
}

/// The GPUs of a target as JSON, as one process tells them another.
static Result<std::string> describeGpus(const std::string &target) {
  MGPU_TRY_ASSIGN(CudaTarget cuda, device::parseCudaTarget(target));
  MGPU_TRY_ASSIGN(device::CudaMachine machine, device::inspectCuda());
  json gpus = json::array();
  for (int number : cuda.gpus) {
    MGPU_TRY_ASSIGN(const auto gpu, gpuOf(machine, number));
    gpus.push_back({gpu.name, gpu.arch, machine.driver, gpu.memoryBytes,
                    gpu.multiprocessors, gpu.clockKhz, gpu.memoryClockKhz,
                    gpu.busBits});
  }
  return textOf(gpus);
}

Result<std::vector<GpuIdentity>> gpusOfTarget(const std::string &target) {
  MGPU_TRY_ASSIGN(const std::string text,
                  askDriver([&] { return describeGpus(target); }));
  std::vector<GpuIdentity> gpus;
  for (const json &gpu : json::parse(text, nullptr, false))
    gpus.push_back({gpu.at(0), gpu.at(1), gpu.at(2)});
  if (gpus.empty())
    return fail(ErrorKind::Internal, "the GPUs are not read back");
  return gpus;
}

Result<std::vector<planner::GpuFacts>> factsOfGpus(const std::string &target) {
  auto text = askDriver([&] { return describeGpus(target); });
  if (!text && text.error().kind == ErrorKind::Absent)
    return fail(ErrorKind::Absent,
                fmt::format("{}; --target sim:NAME plans for a GPU that is not "
                            "here",
                            text.error().message));
  if (!text)
    return fail(text.error());
  std::vector<planner::GpuFacts> gpus;
  for (const json &gpu : json::parse(*text, nullptr, false)) {
    const std::string arch = gpu.at(1); // "sm_90"
    gpus.push_back({gpu.at(0), uint32_t(std::atoi(arch.c_str() + 3)), gpu.at(3),
                    gpu.at(4), gpu.at(5), gpu.at(6), gpu.at(7)});
  }
  return gpus;
}

Result<std::string> architectureOf(const std::vector<int> &gpus) {
  return askDriver([&] { return device::architectureOf(gpus); });
}

} // namespace mgpu::pipeline

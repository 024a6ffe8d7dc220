// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune devices`, what can follow --target on this machine, and
// `mgpu-tune doctor`, what it has and what will not work.
#include "device/cuda/CudaDriver.h"
#include "device/cuda/api/Libraries.h"
#include "pipeline/target/Doctor.h"
#include "support/Result.h"
#include "tools/mgpu-tune/JsonOutput.h"
#include "tools/mgpu-tune/Options.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <thread>

namespace mgpu::tools {

using nlohmann::json;

Result<int> runDevices(const HardwareOptions &options) {
  json targets = json::array();
  auto add = [&](const std::string &name, bool available,
                 const std::string &description) {
    targets.push_back({{"name", name},
                       {"available", available},
                       {"description", description}});
    if (!options.json)
      fmt::print("{:<9} {}\n", name, description);
  };
  add(options.json ? "host" : "host[:N]", true,
      fmt::format("N virtual devices on this machine, {} processor cores",
                  std::max(1u, std::thread::hardware_concurrency())));
  auto machine = device::inspectCuda();
  if (!machine)
    add("cuda", false, machine.error().message);
  else
    for (size_t k = 0; k < machine->gpus.size(); ++k) {
      const device::CudaMachine::Gpu &gpu = machine->gpus[k];
      add(fmt::format("cuda:{}", k), gpu.computeMode != "prohibited",
          fmt::format("{}, {}, {:.1f} GB, {} multiprocessors; cuda:{}/N is it "
                      "as N devices",
                      gpu.name, gpu.arch, double(gpu.memoryBytes) * 1e-9,
                      gpu.multiprocessors, k));
    }
  auto nccl = device::findNccl();
  const size_t gpus = machine ? machine->gpus.size() : 0;
  add("cuda:K,L", gpus > 1 && nccl,
      gpus > 1 && !nccl
          ? nccl.error().message
          : fmt::format("{} GPUs are visible; {}", gpus, severalGpusNote));
  if (options.json)
    tools::printJson(json{{"targets", std::move(targets)}});
  return 0;
}

Result<int> runDoctor(const HardwareOptions &options) {
  const MachineReport report = inspectMachine();
  if (options.json) {
    tools::printJson(report.facts);
    return 0;
  }
  for (const auto &[title, text] : report.lines)
    fmt::print("{:<12} {}\n", title, text);
  fmt::print("will not work:\n");
  for (const std::string &problem : report.problems)
    fmt::print("  {}\n", problem);
  return 0;
}

} // namespace mgpu::tools

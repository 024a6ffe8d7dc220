// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/target/Doctor.h"

#include <cstdlib>
#include <fmt/format.h>

namespace mgpu::pipeline {

using nlohmann::json;

static void reportGpus(const device::CudaMachine &machine,
                       MachineReport &report) {
  json gpus = json::array(), peers = json::array();
  std::string apart;
  for (size_t k = 0; k < machine.gpus.size(); ++k) {
    const device::CudaMachine::Gpu &gpu = machine.gpus[k];
    gpus.push_back({{"name", gpu.name},
                    {"uuid", gpu.uuid},
                    {"arch", gpu.arch},
                    {"memory_bytes", gpu.memoryBytes},
                    {"multiprocessors", gpu.multiprocessors},
                    {"clock_khz", gpu.clockKhz},
                    {"memory_clock_khz", gpu.memoryClockKhz},
                    {"compute_mode", gpu.computeMode}});
    report.lines.push_back(
        {fmt::format("GPU {}", k),
         fmt::format("{}, {}, {} bytes, {} multiprocessors, {} MHz, memory {} "
                     "MHz, compute mode {}, {}",
                     gpu.name, gpu.arch, gpu.memoryBytes, gpu.multiprocessors,
                     gpu.clockKhz / 1000, gpu.memoryClockKhz / 1000,
                     gpu.computeMode, gpu.uuid)});
    if (gpu.computeMode != "default")
      report.problems.push_back(
          fmt::format("GPU {} is in compute mode {}: other processes may keep "
                      "it from this one",
                      k, gpu.computeMode));
    if (gpu.arch != machine.gpus[0].arch)
      report.problems.push_back(fmt::format(
          "GPUs 0 and {} are of {} and {}: no --target cuda:K,L of both", k,
          machine.gpus[0].arch, gpu.arch));
    peers.push_back(gpu.reaches);
    std::string reached;
    for (size_t other = 0; other < gpu.reaches.size(); ++other) {
      if (other != k && gpu.reaches[other])
        reached += fmt::format("{}{}", reached.empty() ? "" : ", ", other);
      if (other > k && !gpu.reaches[other])
        apart +=
            fmt::format("{}{} and {}", apart.empty() ? "" : ", ", k, other);
    }
    if (machine.gpus.size() > 1)
      report.lines.push_back(
          {fmt::format("peers of {}", k), reached.empty() ? "none" : reached});
  }
  if (!apart.empty())
    report.problems.push_back(
        fmt::format("fast collectives of GPUs {}: they do not reach each "
                    "other's memory, and NCCL goes through the host's",
                    apart));
  report.facts["gpus"] = std::move(gpus);
  report.facts["peer_access"] = std::move(peers);
}

void reportMachine(const Result<device::CudaMachine> &machine,
                   MachineReport &report, int &driverMajor) {
  if (!machine) {
    report.add("driver", "driver", {{"error", machine.error().message}},
               "no: " + machine.error().message);
    report.problems.push_back("--target cuda: there is no usable driver");
    return;
  }
  driverMajor = std::atoi(machine->driver.c_str());
  report.add("driver", "driver",
             {{"cuda", machine->driver}, {"logs", machine->logs}},
             fmt::format("knows CUDA {}{}", machine->driver,
                         machine->logs ? "" : ", does not explain errors"));
  if (machine->gpus.empty())
    report.problems.push_back("--target cuda: no GPU is visible");
  reportGpus(*machine, report);
}

} // namespace mgpu::pipeline

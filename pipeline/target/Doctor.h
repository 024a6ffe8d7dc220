// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_TARGET_DOCTOR_H
#define MGPU_PIPELINE_TARGET_DOCTOR_H

// The step of `doctor`: what this machine is, what of CUDA it has, and what
// will therefore not work.

#include "device/cuda/CudaDriver.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace mgpu::pipeline {

/// The findings, as lines for people and as facts for --json.
struct MachineReport {
  nlohmann::json facts;
  std::vector<std::pair<std::string, std::string>> lines; ///< title, text
  std::vector<std::string> problems; ///< what will not work, and why

  void add(const char *key, const char *title, nlohmann::json value,
           const std::string &text) {
    facts[key] = std::move(value);
    lines.push_back({title, text});
  }
};

/// All of it.
MachineReport inspectMachine();

/// The driver, its GPUs, and which reach each other's memory. `driverMajor` is
/// left alone where there is no driver.
void reportMachine(const Result<device::CudaMachine> &machine,
                   MachineReport &report, int &driverMajor);

/// The processor, and what makes times on it vary.
void reportHost(MachineReport &report);

/// The note of `doctor` and `devices` until it has been tried.
inline constexpr const char *severalGpusNote =
    "several GPUs at a time and NCCL: built, and never yet used on hardware "
    "(docs/limits.md)";

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_TARGET_DOCTOR_H

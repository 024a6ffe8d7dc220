// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_DOCTOR_H
#define MGPU_TOOLS_MGPU_TUNE_DOCTOR_H

#include "device/cuda/CudaDriver.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace mgpu::pipeline {

/// The lines printed, and the same as JSON.
struct Report {
  nlohmann::json out;
  std::vector<std::pair<std::string, std::string>> lines; ///< title, text
  std::vector<std::string> problems; ///< what will not work, and why

  void add(const char *key, const char *title, nlohmann::json value,
           const std::string &text) {
    out[key] = std::move(value);
    lines.push_back({title, text});
  }
};

/// The driver, its GPUs, and which reach each other's memory. `driverMajor` is
/// left alone where there is no driver.
void reportMachine(const Result<device::CudaMachine> &machine, Report &report,
                   int &driverMajor);

/// The processor, and what makes times on it vary.
void reportHost(Report &report);

/// What `doctor` and `devices` say of it until it has been tried.
inline constexpr const char *severalGpusNote =
    "several GPUs at a time and NCCL: built, and never yet used on hardware "
    "(docs/limits.md)";

} // namespace mgpu::pipeline

#endif // MGPU_TOOLS_MGPU_TUNE_DOCTOR_H

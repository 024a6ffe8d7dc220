// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_TARGET_TARGET_H
#define MGPU_PIPELINE_TARGET_TARGET_H

// The --target option.

#include "device/cuda/CudaDriver.h"
#include "device/cuda/CudaTarget.h"
#include "planner/plan/Plan.h"
#include "support/Result.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mgpu::pipeline {

using device::CudaTarget;
using device::isCudaTarget;
using device::parseCudaTarget;
using device::parseNccl;
using device::severalGpus;

struct OpenOptions {
  uint32_t threads =
      0; ///< threads that replay on the host; 0: as many as useful
  /// That the host's further threads stay on; as device::WorkerPool has it.
  std::span<const int> workerCpus = {};
  /// openTargetRunner() keeps each thread that replays on a CPU of its own.
  bool pins = false;
  /// How long each replay on a GPU may take; zero is no limit.
  std::chrono::milliseconds deadline = std::chrono::minutes(2);
  bool profiles = false;            ///< CudaOptions::profiles
  device::CudaCompile compile = {}; ///< CudaOptions::compile; null: NVRTC
};

/// Opens `target` for a program of `numDevices` devices. "" is "host". Errors:
/// Usage for an unknown form, Absent for a device that is not there or not
/// enough of them, Unsupported for a target this version does not run and for
/// several GPUs (severalGpus()), which only `run` and `replay` take.
Result<std::unique_ptr<device::Driver>>
openTarget(const std::string &target, uint32_t numDevices,
           const OpenOptions &options = {});

/// One GPU of several, in a process of its own, whose environment it changes:
/// device `rank` of the program. `watch` and `compile` are those of
/// CudaOptions.
Result<std::unique_ptr<device::Driver>>
openRank(int gpu, uint32_t rank, std::chrono::milliseconds deadline,
         const device::NcclOptions &nccl, std::function<Result<void>()> watch,
         device::CudaCompile compile);

/// The number of devices openTarget() would open; its errors, but that a GPU
/// is looked for only when it is opened.
Result<uint32_t> targetDevices(const std::string &target, uint32_t numDevices);

/// "idle       7 of 8 devices: ...": what to do where a machine of `devices`
/// has more than the program's `used`; else nothing.
std::string idleText(uint32_t used, uint32_t devices);

/// The streams of each device that a target is planned for: on a GPU all its
/// devices share eight hardware channels, beyond which chains wait for each
/// other without need.
uint32_t streamsOf(const std::string &target, uint32_t wished);

// The threads that replay on the host, and the level of CPU that their kernels
// are for, as a user chooses them.

/// Usage, with what there is, for more `threads` than this process has CPUs,
/// and for a level ("x86-64-v3"; "": any) that this processor does not run.
/// `where` comes before the options' names in the sentence ("--").
Result<void> checkWorkers(uint32_t threads, const std::string &cpu,
                          const char *where);
/// A program that is opened by a call: on GPUs any of them is Usage too.
Result<void> checkWorkersOf(const std::string &target, uint32_t threads,
                            const std::string &cpu, bool pins);

/// On how many threads a plan is replayed that nobody has measured.
uint32_t threadsFor(const planner::Plan &plan, const planner::Dag &dag);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_TARGET_TARGET_H

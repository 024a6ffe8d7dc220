// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_BENCH_PROFILE_CALIBRATE_H
#define MGPU_BENCH_PROFILE_CALIBRATE_H

// Measures a target through device/api alone, and writes what it is like as a
// topology, so that plans can be made for it elsewhere.

#include "bench/profile/ChainTimes.h"
#include "device/api/Topology.h"

#include <span>

namespace mgpu::bench {

/// A kernel, compiled for the target, and one way to call it.
struct CalibrationKernel {
  std::string name;
  std::vector<std::byte> object;
  Dim3 grid;
  struct Argument {
    uint64_t memoryBytes = 0; ///< its own memory, zeroed; 0: a scalar
    uint64_t bits = 0;        ///< a scalar's bits; for memory the offset in it
  };
  std::vector<Argument> arguments;
  double flops = 0, bytes = 0; ///< one call's; bytes read and written
};

struct CalibrationMatmul {
  std::string type; ///< "f32", "bf16"
  uint32_t m = 0, n = 0, k = 0;
  CalibrationKernel kernel;
  bool isTurned = false; ///< B is n x k
};

/// A kernel of the host, and what it does (planner/cost/HostRates.h).
struct HostKernel {
  CalibrationKernel kernel;
  std::map<std::string, double> counts;
};

struct CalibrationInput {
  device::Driver &driver;
  /// Bound by memory, and by arithmetic with one block for each of a grid of at
  /// least as many as the device has multiprocessors.
  CalibrationKernel memory, arithmetic;
  std::vector<CalibrationMatmul> matmuls;
  /// The facts that cannot be measured: name, memory, multiprocessors,
  /// architecture, the kind of the links, and how many GPUs there are. Its
  /// rates are replaced.
  device::Topology about;
  std::string source; ///< "measured by calibrate on DATE, on ...: "
  /// The largest array that is copied, and communicated.
  uint64_t largestBytes = uint64_t(16) << 20;
  /// Time for each figure; at least three replays are made.
  double secondsPerFigure = 0.3;
  std::function<void(const std::string &)> progress = nullptr; ///< may be null
  /// Set if several ranks calibrate together, each with devices of its own. A
  /// rank has one GPU, and Driver::join() was called for all of
  /// calibratedRanks().
  LargestOfAll largest = nullptr;
  /// The machine of each device, where there are several; empty: one.
  std::vector<uint32_t> nodes = {};
  /// Kernels for a host's devices, which share its memory; else empty.
  std::vector<HostKernel> host = {};
};

/// Measures one figure at a time by ChainTimes and takes medians. Contention is
/// measured between two independent nodes: on one device if there is one, or if
/// one of several GPUs is here, else on two. Nodes that do not overlap are left
/// out. Several GPUs measure all at once, and each figure is the slowest GPU's.
/// With kernels of the host all is measured twice, the least time of chains,
/// and a third time where the passes differ; a figure counts that two of them
/// find within `agreement` times, and the rest is left out. Errors: the
/// driver's; Internal for a figure that is not above 0; Absent where fewer than
/// half of the figures are left.
Result<device::Topology> calibrate(const CalibrationInput &input);

/// How far two passes of a calibration of the host may be apart.
inline constexpr double agreement = 1.5;

/// The figures on which the two best of at least two passes agree, the better
/// of each; how many do not is added to `refused`.
device::Topology::Calibration
agreed(std::span<const device::Topology::Calibration> passes, size_t &refused);

/// The numbers of devices, from the first on, for which collectives are
/// measured: 2, 4, ... and all.
std::vector<uint32_t> calibratedRanks(uint32_t devices);

} // namespace mgpu::bench

#endif // MGPU_BENCH_PROFILE_CALIBRATE_H

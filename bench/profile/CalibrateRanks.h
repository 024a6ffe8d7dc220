// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_BENCH_PROFILE_CALIBRATERANKS_H
#define MGPU_BENCH_PROFILE_CALIBRATERANKS_H

// Several GPUs as one topology, measured by all of them at once.

#include "bench/profile/Calibrate.h"
#include "capture/ranks/Ranks.h"

namespace mgpu::bench {

/// Makes the kernels to measure with, for a driver, in the process of its rank.
/// `largest` need not be set.
using MakeCalibration =
    std::function<Result<CalibrationInput>(device::Driver &)>;

/// Calibrates the `devices` GPUs that `open` opens. With `part` those of other
/// processes are among them, which all make the same call and find the same.
/// Errors: those of Ranks and of calibrate().
Result<device::Topology>
calibrateRanks(uint32_t devices, capture::RankJob::Open open,
               capture::Ranks::Options options, MakeCalibration make,
               std::optional<capture::RemotePart> part = {});

} // namespace mgpu::bench

#endif // MGPU_BENCH_PROFILE_CALIBRATERANKS_H

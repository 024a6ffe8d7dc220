// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels that `calibrate` measures with, compiled for a target.
#ifndef MGPU_PIPELINE_BUILD_CALIBRATIONKERNELS_H
#define MGPU_PIPELINE_BUILD_CALIBRATIONKERNELS_H

#include "bench/profile/Calibrate.h"
#include "pipeline/program/LoadedProgram.h"

namespace mgpu::pipeline {

/// By calibrate.mlir, compiled for a target.
struct CalibrationKernels {
  bench::CalibrationKernel memory, arithmetic;
  std::vector<bench::CalibrationMatmul> matmuls;
  std::vector<bench::HostKernel> host; ///< of HostKernels.h; of a GPU none
};

/// The bytes of each buffer of `kernel`.
uint64_t bytesOf(const bench::CalibrationKernel &kernel);

/// `architecture` is the target's ("sm_90"), empty for the host's. The kernels
/// are those of calibrate.mlir, or of the bundle of it that `options` names.
Result<CalibrationKernels> compileCalibration(const LoadOptions &options,
                                              const std::string &architecture);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_BUILD_CALIBRATIONKERNELS_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PRODUCTFORMS_H
#define MGPU_PIPELINE_PRODUCTFORMS_H

// Which of mgpu's own forms of matrix products on tensor cores have run and
// passed on a GPU. The database keeps that by GPU, driver and version of mgpu.
// A form that has passed is the default of f16 and bf16, in cuBLASLt's place.

#include "db/TuningStore.h"
#include "pipeline/GpuIdentity.h"
#include "pipeline/LoadedProgram.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu::pipeline {

using IdentifyGpus =
    std::function<Result<std::vector<GpuIdentity>>(const std::string &)>;

/// The forms, as --tensor-cores names them, the best first.
inline constexpr const char *formsToTry[] = {"wgmma", "mma"};

/// Stores that the form gave the right bits on the GPU, in replays of which
/// the median took `medianUs`; or with `fault` that it did not, for good.
Result<void> recordForm(db::TuningStore &store, const GpuIdentity &gpu,
                        const std::string &form, double medianUs,
                        const std::string &fault = "");

/// "passed:wgmma,mma", those of the forms that passed on every GPU of
/// options.target. Empty where none did, the target is not a GPU, a form is
/// asked for, the record is not to be used, or there is no database.
std::string passedForms(const LoadOptions &options,
                        const IdentifyGpus &identify = gpusOfTarget);
inline constexpr std::string_view byRecord = "passed:";
/// Whether `tensorCores` is what passedForms() gives, and not the user's word.
inline bool isByRecord(const std::string &tensorCores) {
  return tensorCores.starts_with(byRecord);
}
/// Whether either is for `form`.
inline bool asksForForm(const std::string &tensorCores,
                        const std::string &form) {
  if (!isByRecord(tensorCores))
    return tensorCores == form;
  std::string list = "," + tensorCores.substr(byRecord.size()) + ",";
  return list.find("," + form + ",") != std::string::npos;
}

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_PRODUCTFORMS_H

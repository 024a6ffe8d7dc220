// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PRODUCTFORMS_H
#define MGPU_PIPELINE_PRODUCTFORMS_H

// Which of mgpu's own forms of matrix products on tensor cores have run and
// passed on a GPU. The database keeps that by GPU, driver and version of mgpu.
// A form that has passed is the default of f16 and bf16, in cuBLASLt's place.

#include "db/TuningStore.h"
#include "pipeline/GpuIdentity.h"
#include "pipeline/LoadedProgram.h"
#include "pipeline/ProductPolicy.h"

#include <functional>
#include <string>
#include <vector>

namespace mgpu::pipeline {

using IdentifyGpus =
    std::function<Result<std::vector<GpuIdentity>>(const std::string &)>;

/// Stores that the form gave the right bits on the GPU, in replays of which
/// the median took `medianUs`; or with `fault` that it did not, for good.
Result<void> recordForm(db::TuningStore &store, const GpuIdentity &gpu,
                        TensorForm form, double medianUs,
                        const std::string &fault = "");

/// The forms that passed on every GPU of options.target, the best first. None
/// where the target is not a GPU, options.products is not open, the record is
/// not to be used, or there is no database.
std::vector<TensorForm>
passedForms(const LoadOptions &options,
            const IdentifyGpus &identify = gpusOfTarget);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_PRODUCTFORMS_H

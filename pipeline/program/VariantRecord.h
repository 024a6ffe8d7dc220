// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PROGRAM_VARIANTRECORD_H
#define MGPU_PIPELINE_PROGRAM_VARIANTRECORD_H

// The evidence of variants: which ran and gave the right bits on a GPU. The
// database keeps it by GPU, driver and version of mgpu.

#include "db/TuningStore.h"
#include "pipeline/program/LoadedProgram.h"
#include "pipeline/program/Variants.h"
#include "pipeline/target/GpuIdentity.h"

#include <functional>
#include <string>
#include <vector>

namespace mgpu::pipeline {

using IdentifyGpus =
    std::function<Result<std::vector<GpuIdentity>>(const std::string &)>;

/// Stores what came of a variant on the GPU: what it took, and the same without
/// it; or its fault, which stays for good. Its verdict is Passed or Failed.
Result<void> recordEvidence(db::TuningStore &store, const GpuIdentity &gpu,
                            Variant variant, const Evidence &evidence);

/// Reads what is stored of it for this version of mgpu.
Result<Evidence> evidenceOf(db::TuningStore &store, const GpuIdentity &gpu,
                            Variant variant);

/// A record of a variant, for any GPU and version.
struct StoredEvidence {
  std::string gpu, driver, version; ///< "NVIDIA H100", "CUDA driver 13.0"
  Evidence evidence;
};
Result<std::vector<StoredEvidence>> allEvidence(db::TuningStore &store,
                                                Variant variant);

/// options.variants with the defaults of the target's GPUs: what each of them
/// has by default. It is the answer without evidence where the target is not a
/// GPU, the user left nothing open, the record is not to be used, or there is
/// no database.
Variants withEvidence(const LoadOptions &options,
                      const IdentifyGpus &identify = gpusOfTarget);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_PROGRAM_VARIANTRECORD_H

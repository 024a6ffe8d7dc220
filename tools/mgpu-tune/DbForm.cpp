// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune db form`.
#include "device/cuda/CudaTarget.h"
#include "pipeline/ProductForms.h"
#include "tools/mgpu-tune/DbCommand.h"
#include "tools/mgpu-tune/JsonOutput.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mgpu::pipeline {

using namespace pipeline;
using device::isCudaTarget;
using nlohmann::json;

Result<int> runDbForm(const DbOptions &options) {
  const std::string target = options.target.empty() ? "cuda" : options.target;
  if (!isCudaTarget(target))
    return fail(ErrorKind::Usage,
                fmt::format("--target {}: a form passes on a GPU: name one as "
                            "cuda:0",
                            target));
  if (options.fault.empty() == (options.medianUs == 0))
    return fail(ErrorKind::Usage, "give --replay-us of replays that gave the "
                                  "right bits, or --failed with what went "
                                  "wrong");
  MGPU_TRY_ASSIGN(std::vector<GpuIdentity> gpus, gpusOfTarget(target));
  MGPU_TRY_ASSIGN(auto store, openStore(options.database, db::Access::Create));
  for (const GpuIdentity &gpu : gpus) {
    MGPU_TRY(
        recordForm(store, gpu, options.form, options.medianUs, options.fault));
    if (!options.json)
      fmt::print("{}: {} on {}, CUDA driver {}\n", formName(options.form),
                 options.fault.empty() ? "passed" : "failed", gpu.name,
                 gpu.driver);
  }
  if (options.json)
    pipeline::printJson(json{{"form", formName(options.form)},
                             {"gpus", gpus.size()},
                             {"passed", options.fault.empty()}});
  return 0;
}

} // namespace mgpu::pipeline

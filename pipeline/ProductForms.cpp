// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/ProductForms.h"

#include "db/FileSystem.h"
#include "device/cuda/CudaTarget.h"

#include <fmt/format.h>

#include <algorithm>
#include <unistd.h>

namespace mgpu::pipeline {

/// How the program of such a TuningProblem begins.
static constexpr const char *problemHead = "product form ";

static db::TuningProblem problemOf(const GpuIdentity &gpu, TensorForm form) {
  db::TuningProblem problem;
  problem.program =
      fmt::format("{}{}, mgpu {}", problemHead, formName(form), MGPU_VERSION);
  problem.device = gpu.name;
  problem.architecture = gpu.arch;
  problem.driver = "CUDA driver " + gpu.driver;
  problem.policy = "the bits of the host";
  return problem;
}

Result<void> recordForm(db::TuningStore &store, const GpuIdentity &gpu,
                        TensorForm form, double medianUs,
                        const std::string &fault) {
  db::Trial trial;
  trial.configuration = db::pairsText({{"form", formName(form)}});
  trial.provenance.version = MGPU_VERSION;
  if (fault.empty()) {
    trial.medianUs = trial.meanUs = trial.lowUs = trial.highUs = medianUs;
    trial.samples = 1;
  } else {
    trial.status = db::TrialStatus::Wrong;
    trial.sentence = fault;
  }
  return store.record(problemOf(gpu, form), trial);
}

std::vector<TensorForm> passedForms(const LoadOptions &options,
                                    const IdentifyGpus &identify) {
  if (!device::isCudaTarget(options.target) || !options.products.isOpen() ||
      !options.usesRecord)
    return {};
  auto path = db::databasePath(options.database);
  if (!path || access(path->c_str(), R_OK) != 0)
    return {};
  // Whoever needs the file says what is wrong with it.
  db::StoreOptions storing;
  storing.database.access = db::Access::ReadOnly;
  auto store = db::TuningStore::open(*path, storing);
  if (!store)
    return {};
  auto problems = store->problems();
  if (!problems ||
      std::none_of(problems->begin(), problems->end(),
                   [](const db::TuningProblem &problem) {
                     return problem.program.starts_with(problemHead);
                   }))
    return {};
  auto gpus = identify(options.target);
  if (!gpus)
    return {};
  std::vector<TensorForm> forms;
  for (TensorForm form : tensorForms) {
    const bool passed =
        std::all_of(gpus->begin(), gpus->end(), [&](const GpuIdentity &gpu) {
          auto best = store->best(problemOf(gpu, form));
          return best && *best;
        });
    if (passed)
      forms.push_back(form);
  }
  return forms;
}

} // namespace mgpu::pipeline

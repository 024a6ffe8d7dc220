// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_RUNCARDS_H
#define MGPU_TOOLS_MGPU_TUNE_RUNCARDS_H

// A program on several GPUs: a process for each.

#include "pipeline/Run.h"
#include "tools/mgpu-tune/CardWorkers.h"
#include "tools/mgpu-tune/Options.h"

namespace mgpu::tune {

/// A process for each GPU, as --deadline and --nccl say. Usage for those.
/// `own` are a bundle's kernels of the target.
struct CardsToOpen {
  CardWorkers::Open open;
  CardWorkers::Options how;
};
Result<CardsToOpen> cardsToOpen(const std::vector<int> &cards,
                                const CardOptions &options,
                                const std::string &database,
                                capture::OwnCubins own = {});

/// `program` and `prepared` must outlive it.
Result<std::unique_ptr<Runner>> openCards(const LoadedProgram &program,
                                          const Prepared &prepared,
                                          const std::vector<int> &cards,
                                          const CardOptions &options);

} // namespace mgpu::tune

#endif // MGPU_TOOLS_MGPU_TUNE_RUNCARDS_H

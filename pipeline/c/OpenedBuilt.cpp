// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/c/OpenedBuilt.h"

#include "pipeline/SourceCompiler.h"

#include <fmt/format.h>

namespace mgpu::capture {

Result<std::unique_ptr<OpenedBuilt>>
OpenedBuilt::open(const planner::Program &program, const std::string &target,
                  const pipeline::PrepareOptions &prepare,
                  pipeline::OpenOptions options,
                  std::chrono::milliseconds deadline) {
  MGPU_TRY(checkDeadline(target, deadline));
  if (deadline.count() > 0)
    options.deadline = deadline;
  const uint32_t devices = program.dag.numDevices;
  MGPU_TRY_ASSIGN(auto several, device::severalGpus(target, devices));
  if (several)
    return fail(ErrorKind::Unsupported,
                fmt::format("target '{}': several GPUs take a bundle: save the "
                            "program with their architecture and open that, or "
                            "take one GPU as so many devices, cuda:{}/{}",
                            target, several->front(), devices));
  std::unique_ptr<OpenedBuilt> out(new OpenedBuilt);
  out->loaded = pipeline::loadBuilt(program, target);
  MGPU_TRY_ASSIGN(out->theRunner,
                  pipeline::openTargetRunner(out->loaded, prepare, options,
                                             out->prepared, [] {}));
  return out;
}

} // namespace mgpu::capture

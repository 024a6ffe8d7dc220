// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/c/OpenedBuilt.h"

#include "pipeline/build/Kernels.h"
#include "pipeline/c/ThreadedGpus.h"
#include "pipeline/program/Compiler.h"

#include <fmt/format.h>

namespace mgpu::pipeline {

Result<std::unique_ptr<OpenedBuilt>>
OpenedBuilt::open(const planner::Program &program, const std::string &target,
                  const PrepareOptions &prepare, OpenOptions options,
                  std::chrono::milliseconds deadline) {
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

Result<std::unique_ptr<OpenedBuilt>> OpenedBuilt::openShared(
    const planner::Program &program, const std::string &target,
    const PrepareOptions &prepare, std::chrono::milliseconds deadline,
    const Meeting &meeting) {
  MGPU_TRY(checkShared(target));
  MGPU_TRY(checkDeadline(target, deadline));
  std::unique_ptr<OpenedBuilt> out(new OpenedBuilt);
  MGPU_TRY_ASSIGN(out->ranks, pipeline::meetRanks(meeting));
  out->loaded = pipeline::loadBuilt(program, target);
  // The others wait for this rank, so they are told why it does not come.
  if (Result<void> done = device::isCudaTarget(target)
                              ? out->openGpuPart(prepare, deadline)
                              : out->openPart(prepare);
      !done) {
    out->ranks->abort(done.error().message);
    return tl::unexpected(done.error());
  }
  return out;
}

Result<void> OpenedBuilt::openPart(const PrepareOptions &prepare) {
  MGPU_TRY(pipeline::targetDevices(loaded.from.target, loaded.dag.numDevices));
  auto prepareFirst = [&]() -> Result<Prepared> {
    PrepareOptions options = prepare;
    options.useTuned = false; // it was tuned for one process
    MGPU_TRY_ASSIGN(Prepared made, pipeline::prepare(loaded, options));
    made.threads = options.threads;
    return made;
  };
  MGPU_TRY_ASSIGN(theRunner, pipeline::shareDevices(loaded.dag, prepareFirst,
                                                    *ranks, prepared));
  return {};
}

Result<void> OpenedBuilt::openGpuPart(const PrepareOptions &prepare,
                                      std::chrono::milliseconds deadline) {
  MGPU_TRY_ASSIGN(
      const RankGpus here,
      pipeline::gpusOfRank(loaded.from.target, loaded.dag.numDevices, *ranks));
  std::optional<std::string> database; // rank 0 alone writes it
  if (ranks->rank() == 0)
    database = loaded.from.database;
  const device::CudaCompile compile =
      pipeline::ownCompiler(std::move(database));
  auto open = [&](const Prepared &) {
    return gpusInThreads(here.gpus, here.part.first, {}, compile, deadline);
  };
  auto prepareFirst = [&](const std::string &arch) {
    PrepareOptions options = prepare;
    options.useTuned = false; // it was tuned for one process
    return pipeline::prepareBare(loaded, options, arch);
  };
  MGPU_TRY_ASSIGN(theRunner, pipeline::shareGpus(loaded.dag, here, open,
                                                 prepareFirst, prepared));
  return {};
}

} // namespace mgpu::pipeline

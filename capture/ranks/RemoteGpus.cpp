// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/ranks/RemoteGpus.h"

#include "capture/ranks/RemoteRunner.h"

namespace mgpu::capture {

Result<std::unique_ptr<Runner>>
runGpusWithOthers(planner::Dag dag, planner::Plan plan,
                  std::vector<Bytes> kernels, RemotePart part,
                  RankJob::Open open, Ranks::Options options) {
  device::MessageRendezvous &others = *part.others;
  options.policy = RankPolicy::Threads;
  auto here =
      Ranks::start(std::move(dag), std::move(plan), std::move(kernels),
                   std::move(open), std::move(options), std::move(part));
  if (!here)
    return fail(others.giveUp(std::move(here.error())));
  return runWithOthers(std::move(*here), others);
}

} // namespace mgpu::capture

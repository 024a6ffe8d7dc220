// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_C_OPENEDBUILT_H
#define MGPU_PIPELINE_C_OPENEDBUILT_H

// A program that was built by calls, planned, compiled and on its target.

#include "pipeline/c/OpenedProgram.h"
#include "pipeline/run/Distributed.h"

namespace mgpu::pipeline {

class OpenedBuilt final : public OpenedProgram {
public:
  /// `deadline` is a GPU's; 0: as `options` have it.
  static Result<std::unique_ptr<OpenedBuilt>>
  open(const planner::Program &program, const std::string &target,
       const PrepareOptions &prepare, OpenOptions options,
       std::chrono::milliseconds deadline);
  /// Opens it on a host target or GPUs that several processes share.
  static Result<std::unique_ptr<OpenedBuilt>>
  openShared(const planner::Program &program, const std::string &target,
             const PrepareOptions &prepare, std::chrono::milliseconds deadline,
             const Meeting &meeting);

  const planner::Program &program() const override { return loaded; }
  const planner::Plan &plan() const override { return prepared.plan; }
  capture::Runner &runner() override { return *theRunner; }
  const std::string &configuration() const override {
    return prepared.configuration;
  }

  const device::Rendezvous *others() const override { return ranks.get(); }
  Facts facts() const override {
    return {loaded.dag.name,
            MGPU_VERSION,
            "",
            "",
            "",
            loaded.from.target,
            prepared.cpu,
            theRunner->description(),
            ""};
  }

private:
  OpenedBuilt() = default;
  Result<void> openPart(const PrepareOptions &prepare);
  Result<void> openGpuPart(const PrepareOptions &prepare,
                           std::chrono::milliseconds deadline);

  std::unique_ptr<device::MessageRendezvous> ranks;
  LoadedProgram loaded;
  Prepared prepared;
  std::unique_ptr<capture::Runner> theRunner;
};

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_C_OPENEDBUILT_H

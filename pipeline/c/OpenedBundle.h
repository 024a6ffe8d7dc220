// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_C_OPENEDBUNDLE_H
#define MGPU_PIPELINE_C_OPENEDBUNDLE_H

// A bundle on the target that was named, ready to be replayed.

#include "capture/replay/Bundle.h"
#include "device/cuda/CudaTarget.h"
#include "pipeline/c/OpenedProgram.h"
#include "pipeline/run/Distributed.h"

#include <string>

namespace mgpu::pipeline {

class OpenedBundle final : public OpenedProgram {
public:
  /// The settings of mgt_options; those from `threads` to `pins` are of the
  /// host alone.
  struct How {
    std::string nccl; ///< as device::parseNccl(), "" but on several GPUs
    std::chrono::milliseconds deadline{}; ///< of GPUs; 0: their own
    uint32_t threads = 0;
    std::string cpu;
    bool pins = false;
    std::optional<uint64_t> memory; ///< most bytes of the buffers
    std::string roles;              ///< "x=output,w*=resident"
    bool audits = false;            ///< it has a reference
  };
  /// A bundle's file, or its bytes where there are any; they are not needed
  /// once it is open.
  struct Source {
    std::string path;
    std::span<const std::byte> bytes;
    Result<capture::Bundle> open() const {
      return bytes.empty() ? capture::Bundle::open(path)
                           : capture::Bundle::ofBytes(bytes);
    }
  };
  /// `target` is "host", "host:N", "" or one of GPUs
  /// (device/cuda/CudaTarget.h).
  static Result<std::unique_ptr<OpenedBundle>>
  open(const Source &source, const std::string &target, const How &how);
  /// Opens it on a host target or GPUs that several processes share.
  static Result<std::unique_ptr<OpenedBundle>>
  openShared(const Source &source, const std::string &target, const How &how,
             const Meeting &meeting);

  const planner::Program &program() const override { return theProgram; }
  const planner::Plan &plan() const override {
    return ranks ? shared.plan : thePlan;
  }
  capture::Runner &runner() override { return *theRunner; }
  const device::Rendezvous *others() const override { return ranks.get(); }
  Facts facts() const override;
  serve::Audit *audit() override { return reference.get(); }

private:
  OpenedBundle() = default;
  Result<void> readBundle(capture::Bundle &bundle, const How &how);
  Result<void> openPart(const Source &source, const std::string &target,
                        const How &how);
  Result<void> openGpuPart(const Source &source, const std::string &target,
                           const How &how, const device::NcclOptions &nccl);
  Result<void> openHost(capture::Bundle &bundle, const std::string &target,
                        const How &how);
  Result<void> openGpu(capture::Bundle &bundle, const std::string &target,
                       bool audits);
  Result<void> openRanks(capture::Bundle &bundle,
                         const std::vector<int> &ordinals,
                         const device::NcclOptions &nccl, bool audits);
  Result<void> openWith(const serve::Audit::Open &open, bool audits);
  Result<std::unique_ptr<capture::Runner>>
  run(std::unique_ptr<device::Driver> driver,
      std::span<const std::vector<std::byte>> kernels,
      const planner::Plan &plan) const;
  /// The bundle's kernels for GPUs, with what they need in the plan.
  Result<std::vector<std::vector<std::byte>>>
  takeCubins(capture::Bundle &bundle, const std::string &arch);

  std::chrono::milliseconds deadline{}; ///< 0: the target's own
  std::string target, code;             ///< as mgt_facts has them
  db::ProgramRecord origin;             ///< its `text` is left out
  std::string hash;
  planner::Program theProgram;
  planner::Plan thePlan;
  std::unique_ptr<device::MessageRendezvous> ranks;
  Prepared shared; ///< rank 0's, where there are ranks
  std::unique_ptr<capture::Runner> theRunner;
  std::unique_ptr<serve::Audit> reference; ///< null: none is asked for
};

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_C_OPENEDBUNDLE_H

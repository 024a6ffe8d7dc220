// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_RUN_DISTRIBUTED_H
#define MGPU_PIPELINE_RUN_DISTRIBUTED_H

// One program in several processes (TheRanks.h): each has a part of its
// devices.

#include "bench/profile/Profile.h"
#include "device/api/MessageRendezvous.h"
#include "pipeline/run/Run.h"
#include "pipeline/target/TheRanks.h"

namespace mgpu::pipeline {

/// The facts of the command that all ranks must have alike: the database's
/// name, and what `more` says.
device::Facts factsOf(const LoadOptions &from, device::Facts more = {});
/// All ranks must have the same program, library and version, and what `more`
/// says. Errors: as device::agree().
Result<void> agreeOnProgram(const planner::Dag &dag,
                            device::MessageRendezvous &others,
                            const device::Facts &more = {});

/// The processors that all ranks' kernels are for.
enum class KernelsFor : uint8_t { Processor, Gpu };

/// Gives all ranks the plan, kernels and threads that rank 0 has in `prepared`,
/// as prepareBare() leaves it. Then the memory that the kernels need is a part
/// of the program and its plan, everywhere.
/// `dag` is the program as those change it on rank 0, and as it was before on
/// the others, which then have the same and have proven the plan. Errors:
/// Absent where a rank's processor cannot run the kernels.
Result<void> sharePrepared(planner::Dag &dag, Prepared &prepared,
                           device::MessageRendezvous &others,
                           KernelsFor what = KernelsFor::Processor);

/// Shares the plans that `profile` measures, one for each number of threads,
/// all after the same transforms.
Result<void> shareSubjects(planner::Dag &dag,
                           std::vector<bench::ProfileSubject> &subjects,
                           std::vector<Bytes> &kernels,
                           device::MessageRendezvous &others);

/// Runs a part of a program's devices here: blocks of them by rank. Rank 0
/// prepares the program; the others take its plan and kernels, and prove the
/// plan. Errors, the same on all ranks: Invalid where one has another program,
/// plan, library or version, or what `more` says; Absent where its processor
/// cannot run the kernels. `others`, `dag` and `prepared`, which is set, must
/// outlive the runner.
Result<std::unique_ptr<Runner>>
shareDevices(planner::Dag &dag,
             const std::function<Result<Prepared>()> &prepareFirst,
             device::MessageRendezvous &others, Prepared &prepared,
             const device::Facts &more = {});

/// agreeOnProgram() of ranks with GPUs: all are of one architecture, which it
/// gives, and have the same NCCL. Errors: Unsupported for a program that GPUs
/// of several processes do not run.
Result<std::string> agreeOnGpus(const planner::Dag &dag, const RankGpus &here,
                                const device::Facts &more);

/// How to open a process or thread for each of some GPUs.
struct RanksToOpen {
  capture::RankJob::Open open;
  capture::Ranks::Options how;
};
/// For what was prepared.
using OpenGpus = std::function<Result<RanksToOpen>(const Prepared &)>;

/// Like shareDevices(), of GPUs. All are of one architecture, which
/// `prepareFirst` gives to prepareBare(). `open` gives the drivers of this
/// rank's GPUs.
Result<std::unique_ptr<Runner>>
shareGpus(planner::Dag &dag, const RankGpus &here, const OpenGpus &open,
          const std::function<Result<Prepared>(const std::string &arch)>
              &prepareFirst,
          Prepared &prepared, const device::Facts &more = {});

/// Like shareDevices(), as openTargetRunner() has it. The target is the host.
Result<std::unique_ptr<Runner>>
openDistributed(LoadedProgram &program, const PrepareOptions &prepare,
                device::MessageRendezvous &others, Prepared &prepared,
                const std::function<void()> &opened);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_RUN_DISTRIBUTED_H

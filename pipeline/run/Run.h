// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_RUN_RUN_H
#define MGPU_PIPELINE_RUN_RUN_H

// The run step: a prepared program on its target, be that one driver of this
// process or several GPUs with a process each.

#include "capture/ranks/Runner.h"
#include "pipeline/build/Prepare.h"
#include "pipeline/program/Arguments.h"
#include "pipeline/target/Target.h"
#include "support/Clock.h"
#include "tuner/candidate/Guards.h"

namespace mgpu::pipeline {

using capture::Runner;

/// Opens the host with open.threads threads. With open.pins each, the calling
/// one too, stays on a CPU of its own, which `cpus` names.
Result<std::unique_ptr<device::Driver>> openHost(const std::string &target,
                                                 uint32_t numDevices,
                                                 OpenOptions open,
                                                 std::vector<int> &cpus);

/// Opens the program's target, prepares the program for it, and builds its
/// graphs. Threads that the program was prepared for win over open.threads. A
/// GPU is opened first, as its architecture decides the kernels; the host
/// afterwards, as the plan decides its threads. `program` and `prepared`, which
/// is set, must outlive the runner. `opened` is called in between, when the
/// import is done. With `guard`, each buffer has a place of its own between
/// guard zones, devices' memory begins as poison, and `guard` points to what
/// checkGuard() asks; the runner owns it. With open.pins the calling thread
/// stays pinned afterwards; Usage where the threads are more than the CPUs.
Result<std::unique_ptr<Runner>>
openTargetRunner(LoadedProgram &program, const PrepareOptions &prepare,
                 OpenOptions open, Prepared &prepared,
                 const std::function<void()> &opened,
                 tuner::GuardedDriver **guard = nullptr);
/// Invalid where a replay wrote outside of the program's buffers.
Result<void> checkGuard(tuner::GuardedDriver &guard);

/// Fills the program's host buffers with the values of its arguments; `makeUp`
/// as loadArguments() has it.
Result<void> bindArguments(const LoadedProgram &program, Runner &runner,
                           bool makeUp = false);

/// A round after the first, ready to be bound, and what it took.
struct MadeRound {
  std::vector<std::pair<planner::BufferId, std::span<std::byte>>> memory;
  double bindUs = 0;
  std::vector<double> replayUs;
};
/// Loads the data of rounds into memory that the target reaches: to bind it is
/// then all there is to do.
Result<std::vector<MadeRound>> makeRounds(const LoadedProgram &program,
                                          const std::vector<Round> &rounds,
                                          Runner &runner);
/// Replays once for each of `us`, as Runner::replay().
using Replays = std::function<Result<void>(std::vector<double> &us)>;
/// Binds the round's data, replays, and fetches. Gives the microseconds of the
/// fetch.
Result<double> runRound(MadeRound &round, uint64_t repeat, Runner &runner,
                        const Replays &replays);

/// Usage for an output that is not an array of the program, or whose file is
/// not an .npy; and for a resident one that is never copied back, or that is of
/// a later round: its state is written once, after the last.
Result<void> checkOutputs(const LoadedProgram &program, const Pairs &outputs,
                          bool isLater = false);
enum class Written { All, Residents, Others };
/// Writes what was fetched.
Result<void> writeOutputs(const LoadedProgram &program, const Pairs &outputs,
                          Runner &runner, Written which = Written::All);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_RUN_RUN_H

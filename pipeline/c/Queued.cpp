// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replays that the caller does not wait for at once.
#include "device/cuda/CudaDriver.h"
#include "pipeline/c/OnProgram.h"

using namespace mgpu;
using pipeline::onProgram;
using pipeline::serve::Event, pipeline::serve::Step,
    pipeline::serve::StepThread;

Result<void> pipeline::settle(mgt_program *program) {
  if (std::exchange(program->isBegun, false)) {
    StepThread &thread = program->steps ? *program->steps : *program->beside;
    MGPU_TRY(thread.wait(program->lastUs, program->timed));
    const std::chrono::duration<double, std::micro> allowed =
        program->serving.deadline;
    program->isOverdue = program->steps && program->lastUs > allowed.count();
    if (program->isOverdue)
      return fail(ErrorKind::Absent,
                  fmt::format("the run that was begun took {:.0f} ms, and {} "
                              "ms were allowed",
                              program->lastUs / 1000,
                              program->serving.deadline.count()));
    program->counters.replayed(program->lastUs);
  }
  if (!std::exchange(program->isQueued, false))
    return {};
  return program->opened->runner().finish();
}

/// Whether a thread of the library's may replay it.
static bool mayBegin(const mgt_program *program) {
  return !program->auditor && !program->opened->others();
}

static Result<void> begin(mgt_program *program) {
  MGPU_TRY(pipeline::settle(program));
  if (!program->steps && !program->beside)
    program->beside = std::make_unique<StepThread>(
        program->opened, program->opened->runner(), program->watch,
        std::chrono::milliseconds{});
  program->isGiven.assign(program->isGiven.size(), false);
  (program->steps ? *program->steps : *program->beside).begin(Step::Replay);
  program->isBegun = true;
  return {};
}

mgt_status mgt_replay_begin(mgt_program *program) {
  return onProgram(program, "mgt_replay_begin", [&]() -> Result<void> {
    MGPU_TRY(pipeline::requireLoaded(program, "mgt_replay_begin"));
    if (!mayBegin(program))
      return fail(ErrorKind::Unsupported,
                  "mgt_replay_begin: a program that is audited, or of several "
                  "processes, is replayed while its caller waits: use "
                  "mgt_replay");
    return begin(program);
  });
}

mgt_status mgt_wait(mgt_program *program) {
  return onProgram(program, "mgt_wait",
                   [&] { return pipeline::settle(program); });
}

mgt_status mgt_capture_into(mgt_program *program, void *stream) {
  return onProgram(program, "mgt_capture_into", [&]() -> Result<void> {
    MGPU_TRY(pipeline::requireLoaded(program, "mgt_capture_into"));
    MGPU_TRY(pipeline::settle(program));
    MGPU_TRY(program->opened->runner().captureInto(stream));
    program->isCaptured = true;
    return {};
  });
}

Result<void> pipeline::requireIdle(const mgt_program *program,
                                   const char *call) {
  if (program->isBegun || program->isQueued)
    return fail(ErrorKind::Usage,
                fmt::format("{}: a run of the other program was begun: wait "
                            "for its replay first (mgt_wait)",
                            call));
  return {};
}

Result<void> pipeline::requireMovable(const mgt_program *program,
                                      const char *call) {
  if (program->isCaptured)
    return fail(ErrorKind::Usage,
                fmt::format("{}: a graph of the caller's has the program's "
                            "addresses (mgt_capture_into), and would use the "
                            "old ones: open the program again to change them",
                            call));
  return {};
}

mgt_status mgt_replay_on(mgt_program *program, void *stream) {
  return onProgram(program, "mgt_replay_on", [&]() -> Result<void> {
    MGPU_TRY(pipeline::requireLoaded(program, "mgt_replay_on"));
    capture::Runner &runner = program->opened->runner();
    if (runner.isOnHost()) {
      if (stream)
        return fail(ErrorKind::Usage, "mgt_replay_on: the host has no streams: "
                                      "stream is NULL there");
      return mayBegin(program) ? begin(program) : pipeline::replayNow(program);
    }
    if (!mayBegin(program) || !runner.canEnqueue()) {
      const std::chrono::milliseconds given = program->serving.deadline;
      MGPU_TRY(device::awaitStream(
          stream, given.count() > 0 ? given : std::chrono::minutes(2)));
      return pipeline::replayNow(program);
    }
    program->isQueued = true; // some of it may be, even after an error
    MGPU_TRY(runner.enqueue(stream));
    program->counters.count(Event::Replay);
    return {};
  });
}

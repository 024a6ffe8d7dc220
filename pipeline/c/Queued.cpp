// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replays that the caller does not wait for at once.
#include "pipeline/c/OnProgram.h"

using namespace mgpu;
using pipeline::onProgram;
using pipeline::serve::Event, pipeline::serve::Step,
    pipeline::serve::StepThread;

Result<void> pipeline::settle(mgt_program *program) {
  if (std::exchange(program->isBegun, false)) {
    StepThread &thread = program->steps ? *program->steps : *program->beside;
    MGPU_TRY(thread.wait(program->lastUs, program->timed));
    program->counters.replayed(program->lastUs);
  }
  if (!std::exchange(program->isQueued, false))
    return {};
  return program->opened->runner().finish();
}

mgt_status mgt_replay_begin(mgt_program *program) {
  return onProgram(program, "mgt_replay_begin", [&]() -> Result<void> {
    MGPU_TRY(pipeline::requireLoaded(program, "mgt_replay_begin"));
    if (program->opened->audit() || program->opened->others())
      return fail(ErrorKind::Unsupported,
                  "mgt_replay_begin: a program that is audited, or of several "
                  "processes, is replayed while its caller waits: use "
                  "mgt_replay");
    MGPU_TRY(pipeline::settle(program));
    if (!program->steps && !program->beside)
      program->beside = std::make_unique<StepThread>(
          program->opened, program->opened->runner(), program->watch,
          std::chrono::milliseconds{});
    program->isGiven.assign(program->isGiven.size(), false);
    (program->steps ? *program->steps : *program->beside).begin(Step::Replay);
    program->isBegun = true;
    return {};
  });
}

mgt_status mgt_wait(mgt_program *program) {
  return onProgram(program, "mgt_wait",
                   [&] { return pipeline::settle(program); });
}

mgt_status mgt_replay_on(mgt_program *program, void *stream) {
  return onProgram(program, "mgt_replay_on", [&]() -> Result<void> {
    MGPU_TRY(pipeline::requireLoaded(program, "mgt_replay_on"));
    program->isQueued = true; // some of it may be, even after an error
    MGPU_TRY(program->opened->runner().enqueue(stream));
    program->counters.count(Event::Replay);
    return {};
  });
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_C_ONPROGRAM_H
#define MGPU_PIPELINE_C_ONPROGRAM_H

// Every call on an open program goes through here: one at a time, and none
// once the program is lost. The first that loses its target says why; all that
// follow say that it was lost.

#include "pipeline/c/Calls.h"
#include "pipeline/c/OpenedProgram.h"

#include <mutex>

namespace mgpu::pipeline {

/// Counts and logs a call that failed, and finds out whether the program is
/// lost. Gives the status of the call.
mgt_status failed(mgt_program *program, const char *name, mgt_status status);
/// The status of a call on a program that is lost.
mgt_status saysLost(mgt_program *program, const char *name);
/// Usage in a child of the process that opened the program, where its lock may
/// be held for good.
Result<void> requireOwnProcess(const mgt_program *program, const char *name);
/// The status of a call on a program that a parent process opened.
mgt_status saysParents(mgt_program *program, const char *name);
/// Waits for the runs that were begun or queued.
Result<void> settle(mgt_program *program);
/// Replays once, audited where it is its turn, and returns when it is done.
Result<void> replayNow(mgt_program *program);
/// Usage while a run of the program was begun or queued, and nobody waited.
Result<void> requireIdle(const mgt_program *program, const char *call);
/// Usage once another graph has the addresses of the program's memory.
Result<void> requireMovable(const mgt_program *program, const char *call);
Result<void> requireLoaded(const mgt_program *program, const char *call);

/// Runs a call on a program, which has its sentence where it fails; the
/// caller has the program's lock.
template <typename Call>
mgt_status onLocked(mgt_program *program, const char *name, Call call) {
  if (program && !program->lost.empty())
    return saysLost(program, name);
  mgt_status status =
      guarded(program ? &program->error : nullptr, [&]() -> Result<void> {
        if (!program)
          return fail(ErrorKind::Usage,
                      fmt::format("{}: program must not be null", name));
        MGPU_TRY(call());
        return program->opened->requireUnchanged();
      });
  if (program && status != MGT_OK)
    status = failed(program, name, status);
  return status;
}

template <typename Call>
mgt_status onProgram(mgt_program *program, const char *name, Call call) {
  if (program && program->isParents())
    return saysParents(program, name);
  std::unique_lock<serve::CallLock> guard;
  if (program)
    guard = std::unique_lock(program->lock);
  return onLocked(program, name, call);
}

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_C_ONPROGRAM_H

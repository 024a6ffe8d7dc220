// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PJRT_SPAWNEDCOMMAND_H
#define MGPU_PIPELINE_PJRT_SPAWNEDCOMMAND_H

#include "support/Result.h"

#include <string>
#include <vector>

namespace mgpu::pipeline::pjrt {

/// How a command ended, and what it said on its standard error. It is Unknown
/// to a process that ignores SIGCHLD or waits for its children elsewhere.
struct CommandEnd {
  enum How { Exited, Killed, Late, Unknown } how = Exited;
  int code = 0; ///< its exit code, or the signal that ended it
  std::string said;
};

/// Runs a command in a folder and waits for its end, `seconds` at most. It is
/// spawned: this process may have threads, and is not copied. It has no input,
/// none of this process's files, a process group of its own, and three quarters
/// of the machine's memory at most. Absent where it cannot be started.
Result<CommandEnd> runCommand(const std::vector<std::string> &words,
                              const std::string &folder, double seconds);

} // namespace mgpu::pipeline::pjrt

#endif // MGPU_PIPELINE_PJRT_SPAWNEDCOMMAND_H

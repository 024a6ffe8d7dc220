// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_C_OPENEDPROGRAM_H
#define MGPU_PIPELINE_C_OPENEDPROGRAM_H

// A program on its target, wherever it came from: what a mgt_program is.

#include "capture/ranks/Runner.h"
#include "device/api/Rendezvous.h"
#include "pipeline/c/mgt.h"
#include "planner/dag/Program.h"

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace mgpu::pipeline {

class OpenedProgram {
public:
  virtual ~OpenedProgram() = default;
  virtual const planner::Program &program() const = 0;
  virtual const planner::Plan &plan() const = 0;
  virtual capture::Runner &runner() = 0;
  /// The tuned configuration, as mgt_configuration() gives it.
  virtual const std::string &configuration() const {
    static const std::string none;
    return none;
  }
  /// The other processes of the program; null where there are none.
  virtual const device::Rendezvous *others() const { return nullptr; }
};

/// Sets what mgt_get_figures() says, as far as the caller's struct goes.
Result<void> giveFigures(const planner::Program &program,
                         const planner::Plan &plan, const char *call,
                         mgt_figures *figures);

/// Usage for a target whose devices several processes cannot share.
Result<void> checkShared(const std::string &target);
/// Unsupported for a deadline on the host.
Result<void> checkDeadline(const std::string &target,
                           std::chrono::milliseconds deadline);

} // namespace mgpu::pipeline

struct mgt_program {
  explicit mgt_program(std::unique_ptr<mgpu::pipeline::OpenedProgram> of);
  const mgpu::planner::Program &program() const { return opened->program(); }
  size_t numArguments() const {
    return program().arguments.size() + program().results.size();
  }
  const mgpu::planner::ProgramArgument &argument(size_t index) const {
    size_t count = program().arguments.size();
    return index < count ? program().arguments[index]
                         : program().results[index - count];
  }

  /// Whose memory arguments are, by their number (mgt_share).
  std::map<size_t, std::shared_ptr<mgpu::pipeline::OpenedProgram>> lenders;
  std::shared_ptr<mgpu::pipeline::OpenedProgram> opened;
  std::string lost; ///< why nothing can be called any more; "": it can
  std::vector<bool> needsValue, isWritten; ///< by argument
  bool isLoaded = false;
  bool isQueued = false;   ///< runs of mgt_replay_on() may not have ended
  std::string error, text; ///< of mgt_program_error(), mgt_explain()
  std::vector<mgt_node_time> times;
};

#endif // MGPU_PIPELINE_C_OPENEDPROGRAM_H

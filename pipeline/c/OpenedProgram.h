// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_C_OPENEDPROGRAM_H
#define MGPU_PIPELINE_C_OPENEDPROGRAM_H

// A program on its target, wherever it came from: what a mgt_program is.

#include "capture/ranks/Runner.h"
#include "device/api/MessageRendezvous.h"
#include "pipeline/c/mgt.h"
#include "pipeline/serve/Auditor.h"
#include "pipeline/serve/CallLock.h"
#include "pipeline/serve/Counters.h"
#include "pipeline/serve/StepThread.h"
#include "planner/dag/Program.h"
#include "support/MappedFile.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace mgpu::pipeline {

/// Tells mgt_get_facts() what neither the program nor its plan knows.
struct Facts {
  std::string name, version, hash, source, sourceHash, target, code, device,
      options;
};

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
  virtual Facts facts() const = 0;
  /// Its reference; null where it was opened without.
  virtual serve::Audit *audit() { return nullptr; }
  /// The other processes of the program; null where there are none.
  virtual const device::Rendezvous *others() const { return nullptr; }

  /// The file whose bytes are arguments; null where there is none.
  std::shared_ptr<const MappedFile> mapped;
  /// Invalid once that file was written.
  Result<void> requireUnchanged() const;
};

/// Sets what mgt_get_figures() says, as far as the caller's struct goes.
Result<void> giveFigures(const planner::Program &program,
                         const planner::Plan &plan, const char *call,
                         mgt_figures *figures);

/// Usage for a target whose devices several processes cannot share.
Result<void> checkShared(const std::string &target);
/// Unsupported for a deadline of processes that share the host.
Result<void> checkDeadline(const std::string &target,
                           std::chrono::milliseconds deadline);

/// The bytes of a program's buffers.
struct MemoryUse {
  uint64_t mostOfDevice = 0, devices = 0, host = 0;
};
MemoryUse memoryOf(const planner::Program &program, const planner::Plan &plan);

/// How a program is served: what mgt_options say of any target.
struct Serving {
  std::chrono::milliseconds deadline{}; ///< of steps on the host; 0: none
  void (*log)(void *user, int level, const char *line) = nullptr;
  void *logUser = nullptr;
  bool ranges = false; ///< of NVTX
  serve::AuditOptions audit = {};
  std::string fresh = {}; ///< "x,y"
};

/// A program with what was done to it: all that mgt_swap() exchanges.
struct Served {
  /// Whose memory arguments are, by their number (mgt_share).
  std::map<size_t, std::shared_ptr<OpenedProgram>> lenders;
  /// Programs that mgt_share() gave memory of this one, as long as they have
  /// it.
  std::vector<std::weak_ptr<void>> lent;
  std::shared_ptr<OpenedProgram> opened;
  Serving serving;
  Facts facts;
  std::shared_ptr<serve::NodeWatch> watch;   ///< null: none
  std::unique_ptr<serve::StepThread> steps;  ///< where there is a deadline
  std::unique_ptr<serve::StepThread> beside; ///< of mgt_replay_begin(), else
  std::vector<capture::TimedReplay> timed;
  /// Memory of arguments that the caller gave or was told of, by their number.
  std::map<size_t, std::span<std::byte>> known;
  double lastUs = 0; ///< of the last replay that was not audited
  std::unique_ptr<serve::Auditor> auditor; ///< where there is a reference
  bool isStopped = false;                  ///< by an audit
  std::vector<size_t> fresh; ///< arguments to be given before each replay
  std::vector<bool> isGiven; ///< since the replay before, by argument
  std::string lost;          ///< why nothing can be called any more; "": it can
  std::vector<bool> needsValue, isWritten; ///< by argument
  bool isLoaded = false;
  bool isOverdue = false;  ///< a run that was begun ended past the deadline
  bool isBegun = false;    ///< mgt_replay_begin() was not waited for
  bool isCaptured = false; ///< into a graph of the caller's
  bool isQueued = false;   ///< runs of mgt_replay_on() may not have ended
};

/// How many fork()s have led to this process since the library was first asked.
uint32_t numForks();

/// Makes the handle of a program that is open, with the weights and constants
/// of `values`.
Result<void> giveProgram(std::unique_ptr<OpenedProgram> opened,
                         const Serving &serving, const mgt_options &values,
                         mgt_program **out);

} // namespace mgpu::pipeline

struct mgt_program : mgpu::pipeline::Served {
  mgt_program(std::unique_ptr<mgpu::pipeline::OpenedProgram> of,
              const mgpu::pipeline::Serving &serving);
  ~mgt_program();
  const mgpu::planner::Program &program() const { return opened->program(); }
  size_t numArguments() const {
    return program().arguments.size() + program().results.size();
  }
  const mgpu::planner::ProgramArgument &argument(size_t index) const {
    size_t count = program().arguments.size();
    return index < count ? program().arguments[index]
                         : program().results[index - count];
  }

  /// Sets up what `serving` asks for. Before anything else is called.
  mgpu::Result<void> start();
  /// Takes an argument's value, to be read where it is.
  mgpu::Result<void> lend(const mgt_input &constant);
  /// Takes the arguments' values that a .pt2 file has.
  mgpu::Result<void> takeWeights(const std::string &file);
  /// Does a step, on its thread where there is a deadline.
  mgpu::Result<void> run(mgpu::pipeline::serve::Step step, double &us) {
    return steps ? steps->run(step, us, timed)
                 : runStep(opened->runner(), step, us, timed);
  }
  /// Replays, audited where it is this one's turn or `isAsked`. `difference` is
  /// set to what was found, or "".
  mgpu::Result<void> replay(bool isAsked, std::string &difference);
  /// Whether another program has memory of this one.
  bool isLent() const {
    return std::any_of(lent.begin(), lent.end(),
                       [](const auto &each) { return !each.expired(); });
  }
  /// Says which of `fresh` was not given; "" where all were.
  std::string stale() const;
  /// Exceptions of the caller's function go no further.
  void say(int level, const std::string &line) const {
    try {
      if (serving.log)
        serving.log(serving.logUser, level, line.c_str());
    } catch (...) {
    }
  }

  /// Whether it was opened before this process was forked: its threads, and
  /// GPUs, are the parent's.
  bool isParents() const { return bornAt != mgpu::pipeline::numForks(); }

  /// One call at a time, as mgt_swap() may come from any thread.
  mutable mgpu::pipeline::serve::CallLock lock;
  /// Its arguments and results as the caller was told of them.
  std::vector<mgpu::planner::ProgramArgument> described;
  mgpu::pipeline::serve::Counters counters;
  const uint32_t bornAt = mgpu::pipeline::numForks();
  /// Whose memory of resident arguments the caller knows from before a swap.
  std::vector<std::shared_ptr<mgpu::pipeline::OpenedProgram>> kept;
  std::string error, text; ///< of mgt_program_error(), mgt_explain()
  std::vector<mgt_node_time> times;
};

#endif // MGPU_PIPELINE_C_OPENEDPROGRAM_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program takes another's place between two replays.
#include "pipeline/c/OnProgram.h"

#include <fmt/format.h>

using namespace mgpu;

namespace {

constexpr const char *call = "mgt_swap";

bool isOnDevice(const mgt_program &program, size_t index) {
  const auto &buffer = program.argument(index).buffer;
  return buffer && !program.program().dag.buffer(*buffer).device.isHost();
}

/// Usage where the caller would see other arguments than before.
Result<void> requireAlike(const mgt_program &program, const mgt_program &next) {
  if (program.numArguments() != next.numArguments() ||
      program.program().arguments.size() != next.program().arguments.size())
    return fail(ErrorKind::Usage,
                fmt::format("{}: the program has {} arguments and {} results, "
                            "and the other {} and {}: open it beside this one",
                            call, program.program().arguments.size(),
                            program.program().results.size(),
                            next.program().arguments.size(),
                            next.program().results.size()));
  for (size_t k = 0; k < program.numArguments(); ++k) {
    const planner::ProgramArgument &ours = program.argument(k),
                                   &its = next.argument(k);
    if (ours.name != its.name || ours.role != its.role ||
        ours.elementType != its.elementType || ours.shape != its.shape ||
        ours.value != its.value ||
        ours.buffer.has_value() != its.buffer.has_value() ||
        isOnDevice(program, k) != isOnDevice(next, k))
      return fail(ErrorKind::Usage,
                  fmt::format("{}: '{}' is not like '{}' of the other "
                              "program: name, role, type, shape and value are "
                              "to be the same",
                              call, ours.name, its.name));
  }
  return {};
}

/// Usage where memory would change hands that its caller does not expect to.
Result<void> requireApart(const mgt_program &program, const mgt_program &next) {
  if (program.isLent() || next.isLent())
    return fail(ErrorKind::Usage,
                fmt::format("{}: memory of one of the programs is another's "
                            "too (mgt_share): close that one first",
                            call));
  for (const auto &[k, memory] : next.known)
    if (next.argument(k).role != planner::ArgumentRole::Resident &&
        !program.known.contains(k))
      return fail(ErrorKind::Usage,
                  fmt::format("{}: '{}' of the other program has memory of its "
                              "caller's or known to it, and this one's has "
                              "not: give it that of this program, or use "
                              "mgt_write",
                              call, next.argument(k).name));
  return {};
}

Result<void> requireReady(const mgt_program &program, const mgt_program &next) {
  if (!next.lost.empty())
    return fail(ErrorKind::Usage, fmt::format("{}: the other program was lost "
                                              "({})",
                                              call, next.lost));
  if (const Result<void> same = next.opened->requireUnchanged(); !same)
    return fail(ErrorKind::Usage, fmt::format("{}: of the other program {}",
                                              call, same.error().message));
  MGPU_TRY(pipeline::requireIdle(&next, call));
  MGPU_TRY(pipeline::requireLoaded(&next, "mgt_swap: of the other program"));
  MGPU_TRY(pipeline::requireMovable(&program, call));
  MGPU_TRY(pipeline::requireMovable(&next, call));
  if (program.opened->others() || next.opened->others())
    return fail(ErrorKind::Unsupported,
                fmt::format("{}: programs of several processes are not "
                            "swapped: open the other one beside",
                            call));
  if (program.opened->runner().isOnHost() != next.opened->runner().isOnHost())
    return fail(ErrorKind::Usage,
                fmt::format("{}: one program is on the host and the other on a "
                            "GPU",
                            call));
  MGPU_TRY(requireAlike(program, next));
  return requireApart(program, next);
}

/// `next` has the arguments and results as `program` has them now, and in the
/// memory that the caller knows, but keeps its own residents.
Result<void> takeOver(mgt_program &program, mgt_program &next) {
  capture::Runner &from = program.opened->runner(), &to = next.opened->runner();
  std::vector<capture::Rebinding> moved;
  for (const auto &[k, memory] : program.known)
    if (program.argument(k).role != planner::ArgumentRole::Resident)
      moved.push_back({*next.argument(k).buffer, memory});
  if (!moved.empty())
    MGPU_TRY(to.bind(moved));
  std::vector<std::byte> bytes;
  for (size_t k = 0; k < program.numArguments(); ++k) {
    const planner::ProgramArgument &argument = program.argument(k);
    const auto known = program.known.find(k);
    if (!argument.buffer)
      continue;
    if (argument.role == planner::ArgumentRole::Resident) {
      const auto lender = program.lenders.find(k);
      if (lender != program.lenders.end() &&
          std::ranges::find(program.kept, lender->second) == program.kept.end())
        program.kept.push_back(lender->second); // the caller knows its memory
      continue;
    }
    const planner::BufferId id = *next.argument(k).buffer;
    if (known != program.known.end()) {
      next.known[k] = known->second;
      const auto lender = program.lenders.find(k);
      next.lenders[k] =
          lender == program.lenders.end() ? nullptr : lender->second;
    } else {
      bytes.resize(program.program().dag.buffer(*argument.buffer).sizeBytes);
      MGPU_TRY(from.read(*argument.buffer, bytes));
      MGPU_TRY(to.write(id, bytes));
    }
    next.isWritten[k] = program.isWritten[k];
    next.isGiven[k] = program.isGiven[k];
  }
  return {};
}

} // namespace

mgt_status mgt_swap(mgt_program *program, mgt_program *next) {
  if (!program || !next || program == next)
    return pipeline::guarded(nullptr, []() -> Result<void> {
      return fail(ErrorKind::Usage,
                  fmt::format("{}: give two programs that are open", call));
    });
  for (mgt_program *each : {program, next})
    if (each->isParents())
      return pipeline::saysParents(each, call);
  const std::scoped_lock guard(program->lock, next->lock);
  return pipeline::onLocked(program, call, [&]() -> Result<void> {
    MGPU_TRY(requireReady(*program, *next));
    MGPU_TRY(pipeline::settle(program));
    MGPU_TRY(takeOver(*program, *next));
    std::swap(static_cast<pipeline::Served &>(*program),
              static_cast<pipeline::Served &>(*next));
    program->say(MGT_INFO,
                 fmt::format("'{}' {} took the place of '{}' {}",
                             program->facts.name,
                             program->facts.hash.substr(0, 12),
                             next->facts.name, next->facts.hash.substr(0, 12)));
    return {};
  });
}

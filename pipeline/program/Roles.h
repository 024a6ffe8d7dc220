// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PROGRAM_ROLES_H
#define MGPU_PIPELINE_PROGRAM_ROLES_H

// Which arguments stay on the devices: --role with patterns and
// --resident-except, and what it costs to upload the others in each replay.

#include "pipeline/program/LoadedProgram.h"
#include "planner/plan/Plan.h"

#include <span>

namespace mgpu::pipeline {

/// Gives the arguments the roles of program.from.rolePatterns, the last that
/// matches, unless program.from.roles names them, and then `resident` to all
/// that nothing writes, with --resident-except, but those it names and scalars.
/// Usage where a pattern or name matches no argument.
Result<void> applyRoles(LoadedProgram &program);

/// Applies the roles to a program that was put together by calls.
Result<void> applyRoles(planner::Program &program, const RoleOptions &options,
                        MadeResident &made);

/// Copies in each replay of arguments that nothing writes, which would be done
/// once if they were resident.
struct Uploads {
  size_t arguments = 0;
  uint64_t bytes = 0; ///< of the copies, to all devices
  double us = 0;      ///< of the copies to the device where they take longest
};
/// `durationsUs` are by node.
Uploads uploadsOf(const planner::Program &program,
                  std::span<const double> durationsUs);

/// "uploads    2 arguments that nothing writes, 4.2 MB, are copied in each
/// replay: 84.350 us; --resident-except NAMES copies all but NAMES once", and a
/// line of what became resident; "" where there is neither.
std::string uploadsText(const LoadedProgram &program,
                        std::span<const double> durationsUs);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_PROGRAM_ROLES_H

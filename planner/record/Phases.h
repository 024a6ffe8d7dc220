// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_RECORD_PHASES_H
#define MGPU_PLANNER_RECORD_PHASES_H

// Decides what a program's arguments are for, and which of its work is done
// once, before or after the replays (docs/semantics.md, "Argument roles").

#include "planner/dag/Program.h"

#include <vector>

namespace mgpu::planner {

/// Roles of the arguments that are not `isGiven`, from what the nodes do.
void inferRoles(Program &program, const std::vector<bool> &isGiven);

/// Moves copies of resident arguments to the phases Load and Fetch; temporary
/// buffers that these use become resident.
void assignPhases(Program &program);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_RECORD_PHASES_H

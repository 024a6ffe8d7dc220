// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How what `plan` found is printed: for people and as JSON.
#ifndef MGPU_TOOLS_MGPU_TUNE_PLANREPORT_H
#define MGPU_TOOLS_MGPU_TUNE_PLANREPORT_H

#include "tools/mgpu-tune/Options.h"

#include <string_view>

namespace mgpu::tools {

inline constexpr std::string_view standardOutput = "-"; ///< as -o names it

/// One JSON object on the standard output.
void printJson(const PlanReport &report, const LoadedProgram &program,
               const PlanCommandOptions &options);

/// A summary, or what --explain, --steps, --shardings and -o - ask for.
void printText(const PlanReport &report, const LoadedProgram &program,
               const PlanCommandOptions &options);

/// The plans of --pareto, as a table or as JSON.
void printFront(const Front &front, bool asJson);

} // namespace mgpu::tools

#endif // MGPU_TOOLS_MGPU_TUNE_PLANREPORT_H

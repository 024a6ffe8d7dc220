// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_CHECKTEXT_H
#define MGPU_PLANNER_IMPORT_CHECKTEXT_H

// Refuses texts that must not reach MLIR's parser, which descends into every
// bracket and shows the line of a fault as it is.

#include "support/Result.h"

#include <string_view>

namespace mgpu::planner {

/// How deep brackets may be nested, what aliases stand for included: each costs
/// the parser a few hundred bytes of stack, and what walks the program after it
/// some more.
inline constexpr unsigned mostNesting = 256;
/// The operators of one expression: affine ones nest without brackets.
inline constexpr unsigned mostSigns = 1024;

/// Invalid where `text` is not text but bytes (compressed, MLIR's bytecode,
/// ...), is of another language, or is nested too deep. `name` is what the
/// error calls it, and its ending may tell the language.
Result<void> checkProgramText(std::string_view text, std::string_view name);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_CHECKTEXT_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_COMPILER_H
#define MGPU_TOOLS_MGPU_TUNE_COMPILER_H

// What of mgpu-tune needs the compiler half. Compiler.cpp has it;
// NoCompiler.cpp stands in for it in a runtime-only build and says so.

#include "tools/mgpu-tune/Program.h"

namespace mgpu::tune {

Result<Program> importProgram(const Options &options, bool racesAreErrors,
                              std::vector<Message> *messages);

} // namespace mgpu::tune

#endif // MGPU_TOOLS_MGPU_TUNE_COMPILER_H

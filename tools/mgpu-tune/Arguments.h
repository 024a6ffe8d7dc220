// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_ARGUMENTS_H
#define MGPU_TOOLS_MGPU_TUNE_ARGUMENTS_H

// The values of --arg.

#include "support/Array.h"
#include "tools/mgpu-tune/Program.h"

namespace mgpu::tune {

struct ArgumentArray {
  const Binding *binding;
  Array value;
};

/// The arrays that --arg gives, loaded and of the right shape. An argument that
/// is read but has no value is a Usage error; with `makeUp` it gets one: random
/// numbers of [0, 1) for floats, zeros for integers, which may be indices.
Result<std::vector<ArgumentArray>> loadArguments(const Program &program,
                                                 const Options &options,
                                                 bool makeUp = false);

} // namespace mgpu::tune

#endif // MGPU_TOOLS_MGPU_TUNE_ARGUMENTS_H

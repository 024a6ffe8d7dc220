// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_ASKINPROCESS_H
#define MGPU_TOOLS_MGPU_TUNE_ASKINPROCESS_H

#include "support/Result.h"

#include <functional>
#include <string>

namespace mgpu::tune {

/// What `question` says in a process of its own, within a minute: of CUDA,
/// which a process that is to be forked must not touch. Its errors come back
/// with their kind; Absent where the process fails.
Result<std::string>
askInProcess(const std::function<Result<std::string>()> &question);

} // namespace mgpu::tune

#endif // MGPU_TOOLS_MGPU_TUNE_ASKINPROCESS_H

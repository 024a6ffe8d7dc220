// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_COMPILE_PTXASLOG_H
#define MGPU_KERNELS_COMPILE_PTXASLOG_H

#include "kernels/abi/CompiledKernel.h"

#include <string_view>

namespace mgpu::kernels {

/// The entry functions named in a log made with `-Xptxas -v`, in its order.
/// The format is that of CUDA 12 and 13: "ptxas info    : Compiling entry
/// function 'k' for 'sm_90'", then the lines about it. Unknown lines are
/// skipped.
std::vector<EntryUsage> parsePtxasLog(std::string_view log);

/// Whether the compiler warned.
bool hasWarning(std::string_view log);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_COMPILE_PTXASLOG_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_PTX_PRINTF_H
#define MGPU_KERNELS_PTX_PRINTF_H

// Functions that the driver has (CUDA C++ programming guide, "Formatted Output"
// and "Assertion"): vprintf, __assertfail, malloc and free.

#include "kernels/ptx/Decoder.h"

namespace mgpu::kernels::ptx {

/// Null for a function that is none of them.
Run systemCall(std::string_view name);
void decodeSystemCall(Decoder &d, Run run, const Operand &results,
                      const Operand &arguments);

} // namespace mgpu::kernels::ptx

#endif // MGPU_KERNELS_PTX_PRINTF_H

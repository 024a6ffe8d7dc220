// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Operations.h"
namespace mgpu::kernels::ptx {
std::span<const Operation> matrixOperations() { return {}; }
} // namespace mgpu::kernels::ptx

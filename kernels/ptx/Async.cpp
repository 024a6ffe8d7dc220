// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Barriers.h"
#include "kernels/ptx/Elements.h"
#include "kernels/ptx/Operations.h"

namespace mgpu::kernels::ptx {
bool Machine::finishBulk(Cluster &, uint64_t) { return false; }
std::span<const Operation> copyOperations() { return {}; }
} // namespace mgpu::kernels::ptx

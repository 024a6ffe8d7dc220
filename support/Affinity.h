// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_AFFINITY_H
#define MGPU_SUPPORT_AFFINITY_H

// Which CPUs the calling thread may run on.

#include <cstdint>
#include <optional>
#include <sched.h>

namespace mgpu {

/// How many CPUs the calling thread may use; at least 1.
uint32_t usableCores();

/// Keeps the calling thread on `cpu` if it may run there, and returns where it
/// might before; else nothing, and it stays as it was.
std::optional<cpu_set_t> pinThread(int cpu);

} // namespace mgpu

#endif // MGPU_SUPPORT_AFFINITY_H

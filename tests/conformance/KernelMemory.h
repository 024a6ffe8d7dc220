// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_CONFORMANCE_KERNELMEMORY_H
#define MGPU_TESTS_CONFORMANCE_KERNELMEMORY_H

// One call of a kernel of a program, and memory to run it on.

#include "planner/dag/Dag.h"

#include <cstddef>
#include <map>
#include <vector>

namespace mgpu::conformance {

/// A call of the kernel in the program.
const planner::KernelCall &firstCall(const planner::Dag &dag, uint32_t kernel);

/// By buffer of a call.
using Memory = std::map<uint32_t, std::vector<std::byte>>;

/// Small numbers, exact in every type.
Memory memoryFor(const planner::Dag &dag, const planner::KernelCall &call);

/// As the host ABI has them.
std::vector<uint64_t> argumentsFor(const planner::KernelCall &call,
                                   Memory &memory);

} // namespace mgpu::conformance

#endif // MGPU_TESTS_CONFORMANCE_KERNELMEMORY_H

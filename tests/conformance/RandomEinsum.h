// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_CONFORMANCE_RANDOMEINSUM_H
#define MGPU_TESTS_CONFORMANCE_RANDOMEINSUM_H

// Random chains of products of tensors with annotations at random, and what
// they give.

#include "tests/conformance/Execute.h"

#include <cstdint>
#include <string>

namespace mgpu::conformance {

struct RandomEinsum {
  std::string text; ///< with annotations of the shard dialect
  HostData inputs;
  std::vector<std::byte> expected; ///< of the result, from loops in C++
};

/// One or two products of tensors with one to three indices of 4 or 6 elements,
/// on a grid of one to three axes. All numbers are whole and small.
RandomEinsum randomEinsum(uint64_t seed);

} // namespace mgpu::conformance

#endif // MGPU_TESTS_CONFORMANCE_RANDOMEINSUM_H

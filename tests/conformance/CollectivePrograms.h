// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_CONFORMANCE_COLLECTIVEPROGRAMS_H
#define MGPU_TESTS_CONFORMANCE_COLLECTIVEPROGRAMS_H

#include "tests/conformance/RandomProgram.h"

namespace mgpu::conformance {

/// Calls all_gather, reduce_scatter and all_to_all along every axis of arrays
/// of rank 1 to 3, and permutes of several patterns, on several groups of four
/// devices: whole buffers, views with gaps, and in place where that is allowed.
/// There are no kernels in it.
RandomProgram makeCollectiveProgram(ElementType type);

} // namespace mgpu::conformance

#endif // MGPU_TESTS_CONFORMANCE_COLLECTIVEPROGRAMS_H

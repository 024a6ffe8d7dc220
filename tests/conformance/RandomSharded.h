// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_CONFORMANCE_RANDOMSHARDED_H
#define MGPU_TESTS_CONFORMANCE_RANDOMSHARDED_H

// Random programs over whole tensors, each written twice: plainly for one
// device, and with annotations of the shard dialect that spread it over a grid.

#include "tests/conformance/RandomSpmd.h"

namespace mgpu::conformance {

/// The programs of a seed: chains of products, elementwise operations,
/// reductions, broadcasts, transposes, reshapes, slices, pads, concatenations
/// and loops, with annotations at random. Arguments have spmdSide x spmdSide
/// elements. Both must give the same bits.
RandomSpmd randomSharded(uint64_t seed);

} // namespace mgpu::conformance

#endif // MGPU_TESTS_CONFORMANCE_RANDOMSHARDED_H

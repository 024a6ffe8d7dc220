// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_ARGUMENTVALUE_H
#define MGPU_SUPPORT_ARGUMENTVALUE_H

// Parses the value of `--arg NAME=` (docs/arguments.md lists the forms).

#include "support/Array.h"
#include "support/Npy.h"

namespace mgpu {

/// The value that `spec` names, as an array of `expectedType`:
///   3.5, -7, true            a number; fills the whole array
///   zeros | iota             0, 0, ... | 0, 1, 2, ... in row-major order
///   random:SEED              element i from output i of SplitMix64
///   (randomBits) FILE.npy FILE.csv[.gz][:COLUMNS][@ROWS]  inclusive, 0-based:
///   :0-63  :64  :0,2,5-7@0-9 FILE.safetensors:TENSOR FILE.pt2:TENSOR
///   raw:TYPE:4096x4096:FILE  little-endian, nothing but the elements
/// Text (.csv, numbers) is converted to `expectedType`; the typed forms must
/// have it. A negative size in `expectedShape` is unknown and taken from the
/// file. One column or one row of a table also fits a one-dimensional shape.
Result<Array> loadArgument(std::string_view spec, ElementType expectedType,
                           std::span<const int64_t> expectedShape);

/// The file that `spec` names; "" where it is of a form without one.
std::string argumentFile(std::string_view spec);

/// Output `index` (from 0) of SplitMix64 started at `seed`. A float takes the
/// top p bits of it times 2^-p, p the significant bits of its type (24 for f32,
/// 8 for bf16): uniform in [0, 1) and exact. i1 takes the top bit, i8 the top
/// 7, wider integers the top 8 (0..255).
uint64_t randomBits(uint64_t seed, uint64_t index);

} // namespace mgpu

#endif // MGPU_SUPPORT_ARGUMENTVALUE_H

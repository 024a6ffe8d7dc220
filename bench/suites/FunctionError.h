// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_BENCH_SUITES_FUNCTIONERROR_H
#define MGPU_BENCH_SUITES_FUNCTIONERROR_H

// How far the host target's mathematical functions are off, as kernels call
// them.

#include "support/Result.h"

#include <cstdint>
#include <string_view>

namespace mgpu::bench {

struct FunctionError {
  /// Most units in the last place between a result and the exact one rounded
  /// to its type.
  double ulps = 0;
  double x = 0, y = 0; ///< arguments where that is; y of two
};

/// Measures `operation` of MLIR's math dialect on f32 or f64, at about
/// `samples` arguments: half of them evenly among all finite numbers of the
/// type, half evenly in -20 to 20. The exact result is the C library's, in f64
/// for f32 and in the 64 bits of mantissa of long double for f64: what that is
/// off itself is below the unit by 2^-28 and 2^-10. Where one result is
/// infinite and the other not, the largest finite number stands for the
/// infinite one. Invalid for an operation that is not known.
Result<FunctionError> measureFunction(std::string_view operation, bool isF64,
                                      uint64_t samples);

} // namespace mgpu::bench

#endif // MGPU_BENCH_SUITES_FUNCTIONERROR_H

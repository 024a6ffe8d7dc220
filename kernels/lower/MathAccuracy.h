// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_LOWER_MATHACCURACY_H
#define MGPU_KERNELS_LOWER_MATHACCURACY_H

// How far mathematical functions may be off, in units in the last place of
// their result.

#include <array>
#include <string_view>

namespace mgpu::kernels {

/// Units in the last place between a result and the exact one rounded to its
/// type. The host's are as bench-ulp measures them (docs/numerics.md has its
/// output). CUDA's are as its programming guide states them in the appendix on
/// mathematical functions, for the functions without fast math. 0: correctly
/// rounded.
struct FunctionUlps {
  std::string_view operation; ///< of MLIR's math dialect
  double hostF32, hostF64, cudaF32, cudaF64;

  /// The larger one of the two targets.
  constexpr double most(bool isF64) const {
    double host = isF64 ? hostF64 : hostF32, cuda = isF64 ? cudaF64 : cudaF32;
    return host > cuda ? host : cuda;
  }
};

inline constexpr std::array functionUlps = {
    FunctionUlps{"acos", 0, 1, 2, 2},  FunctionUlps{"acosh", 0, 2, 4, 3},
    FunctionUlps{"asin", 0, 1, 2, 2},  FunctionUlps{"asinh", 0, 2, 3, 3},
    FunctionUlps{"atan", 0, 1, 2, 2},  FunctionUlps{"atan2", 0, 1, 3, 2},
    FunctionUlps{"atanh", 0, 1, 3, 2}, FunctionUlps{"cbrt", 0, 3, 1, 1},
    FunctionUlps{"cos", 0, 1, 2, 2},   FunctionUlps{"cosh", 0, 1, 2, 1},
    FunctionUlps{"erf", 1, 1, 2, 2},   FunctionUlps{"erfc", 0, 3, 4, 5},
    FunctionUlps{"exp", 1, 1, 2, 1},   FunctionUlps{"exp2", 1, 1, 2, 1},
    FunctionUlps{"expm1", 0, 1, 1, 1}, FunctionUlps{"log", 1, 1, 1, 1},
    FunctionUlps{"log10", 0, 2, 2, 1}, FunctionUlps{"log1p", 0, 1, 1, 1},
    FunctionUlps{"log2", 0, 1, 1, 1},  FunctionUlps{"powf", 0, 1, 4, 2},
    FunctionUlps{"rsqrt", 1, 1, 2, 1}, FunctionUlps{"sin", 0, 1, 2, 2},
    FunctionUlps{"sinh", 0, 2, 3, 2},  FunctionUlps{"sqrt", 0, 0, 0, 0},
    FunctionUlps{"tan", 0, 1, 4, 2},   FunctionUlps{"tanh", 1, 1, 2, 1},
};

/// Null for what rounds once or not at all.
constexpr const FunctionUlps *ulpsOf(std::string_view operation) {
  for (const FunctionUlps &function : functionUlps)
    if (function.operation == operation)
      return &function;
  return nullptr;
}

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_LOWER_MATHACCURACY_H

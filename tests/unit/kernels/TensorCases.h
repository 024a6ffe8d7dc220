// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_KERNELS_TENSORCASES_H
#define MGPU_TESTS_UNIT_KERNELS_TENSORCASES_H

// Matrix products of f16 and bf16, as the importer writes them, and numbers for
// them.

#include "support/Types.h"

#include <cstddef>
#include <string>
#include <vector>

namespace mgpu::kernels {

struct TensorCase {
  const char *name;
  int64_t batch, m, n, k;
  const char *type, *sum;
  /// Of A's layout: rows are that much longer than k, and A begins there.
  int64_t pad, offset;

  int64_t rowOfA() const { return k + pad; }
};

constexpr Dim3 sourceBlock{16, 4, 1};
/// Of the source's blocks.
Dim3 gridOf(const TensorCase &test);

/// As the importer writes it: C is first, as its value is loaded first.
std::string textOf(const TensorCase &test,
                   const std::string &columnStride = "1");

/// Into f32, numbers whose sums round, as their products are exact; else whole
/// ones whose sums stay exact, as a narrow C rounds each sum of the body. None
/// is 0: the text adds zeros, and -0 + 0 is 0.
std::vector<std::byte> valuesOf(size_t count, const std::string &type,
                                bool isExact, uint32_t seed);

} // namespace mgpu::kernels

#endif // MGPU_TESTS_UNIT_KERNELS_TENSORCASES_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_KERNELS_PRODUCTCASES_H
#define MGPU_TESTS_UNIT_KERNELS_PRODUCTCASES_H

// Matrix products as the importer writes them, numbers for them, and what their
// texts must give.

#include "CudaTwin.h"

#include "support/Types.h"

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

namespace mgpu::kernels {

struct ProductCase {
  const char *name;
  int64_t batch, m, n, k;
  const char *type, *sum;
  /// A's layout: rows are that much longer than k, and A begins there.
  int64_t pad, offset;
  /// max(C + bias, 0) + D in the place of C, into D; C begins with D - 1, which
  /// D holds meanwhile.
  bool isFused = false;
  bool isTurned = false; ///< B is stored as its transpose

  int64_t rowOfA() const { return k + pad; }
};
/// How the names of tests call it.
void PrintTo(const ProductCase &test, std::ostream *out);

constexpr Dim3 sourceBlock{16, 4, 1};
/// The grid for the source's blocks.
Dim3 gridOf(const ProductCase &test);

/// As the importer writes it: C is first, as its value is loaded first.
std::string textOf(const ProductCase &test,
                   const std::string &columnStride = "1");

/// Values for a matrix. f32 and f64 get numbers whose sums are hardly ever
/// exact, and zeros of both signs. Narrower types summed in f32 get numbers
/// whose sums round, as their products are exact. Other sums get whole numbers
/// that keep them exact, as a narrow C rounds each sum of the body. Narrower
/// types never get 0: the texts for tensor cores add zeros, and -0 + 0 is 0.
/// `isWhole`: whole numbers in any case.
std::vector<std::byte> valuesOf(size_t count, const ProductCase &test,
                                const std::string &type, uint32_t seed,
                                bool isWhole = false);

/// What a case takes and must give.
struct ProductMemory {
  explicit ProductMemory(const ProductCase &test, bool isWhole = false);
  std::vector<std::byte> a, b, initial, bias;
  /// The launch's arguments, with C there and A at `first`.
  std::vector<uint64_t> arguments(std::vector<std::byte> &c,
                                  uint64_t first) const;
  /// The body's result, by the host.
  std::vector<std::byte> expected() const;
  const ProductCase &test;
};

/// That the configurations of the case in `twins`, which are compiled, give the
/// bits of its body; with `atOddPlaces` also where no address of 16 bytes is a
/// multiple of 16.
void checkBitsOfTheBody(const ProductCase &test, const CudaTwins &twins,
                        bool atOddPlaces = false);

} // namespace mgpu::kernels

#endif // MGPU_TESTS_UNIT_KERNELS_PRODUCTCASES_H

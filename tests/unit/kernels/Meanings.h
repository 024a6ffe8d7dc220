// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_KERNELS_MEANINGS_H
#define MGPU_TESTS_UNIT_KERNELS_MEANINGS_H

// Corners of what operations mean, where MLIR, LLVM or an emitter once had them
// wrong.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace mgpu::kernels {

struct Meaning {
  const char *name;
  /// With %x : memref<256xi64>, %y : memref<512xi64> and %i, the global index.
  std::string body;
  std::function<int64_t(const std::vector<int64_t> &x, size_t i)> expected;
  std::string functions;
};

std::vector<Meaning> meanings();
std::vector<Meaning> floatMeanings();
std::vector<Meaning> laneMeanings();

inline std::string store(const std::string &value) {
  return "memref.store " + value + ", %y[%i] : memref<512xi64>\n";
}

} // namespace mgpu::kernels

#endif // MGPU_TESTS_UNIT_KERNELS_MEANINGS_H

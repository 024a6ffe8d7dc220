// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_KERNELS_KERNELCASES_H
#define MGPU_TESTS_UNIT_KERNELS_KERNELCASES_H

// Kernels that the tests of both emitters share.
#include "support/Types.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mgpu::kernels {

/// A kernel and a launch of it.
struct KernelCase {
  std::string name, text;
  Dim3 block, grid;
  /// Bytes and element type of each memref argument: 'f', 'd', 'i', 'l', 's',
  /// 'c' or 'h' (an f16 or bf16), then scalars.
  struct Buffer {
    char type;
    size_t count;
  };
  std::vector<Buffer> buffers;
  std::vector<uint64_t> scalars;
  bool reshapable = true;

  /// Random bytes for each buffer: small whole and half numbers, which sums and
  /// products of keep exactly, and some large integers.
  std::vector<std::vector<std::byte>> fill(uint32_t seed) const;
};

size_t bytesOf(char type);

/// Each operation of integers and floats, on every element type.
std::vector<KernelCase> operationCases();
/// Kernels with structure: loops, branches, views, barriers, reductions.
const std::vector<KernelCase> &structuredCases();
/// A product of two matrices for each of four subgroups, in two steps along k.
struct MatrixProductCase {
  std::string name;
  int m, n, k;        ///< of one instruction
  std::string stored; ///< of A and B in memory
  std::string factor; ///< and in matrices
  std::string sum;
  bool transposed; ///< A and B lie in memory so, and are loaded so
  KernelCase asCase() const;
};
const std::vector<MatrixProductCase> &matrixProducts();
/// Those, and what else lanes of a subgroup do with matrices and vectors.
const std::vector<KernelCase> &matrixCases();
/// The structured one of that name, which must be there.
const KernelCase &kernelCase(const std::string &name);

} // namespace mgpu::kernels

#endif // MGPU_TESTS_UNIT_KERNELS_KERNELCASES_H

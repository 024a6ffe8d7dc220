// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_KERNELS_CORPUS_H
#define MGPU_TESTS_UNIT_KERNELS_CORPUS_H

// Generated kernels, each of a few operations on one type in one shape of
// launch: what the emitter can write. They are compiled, not run: KernelCases.h
// has kernels whose operands are such that every result is defined.
#include "support/Types.h"

#include <string>
#include <vector>

namespace mgpu::kernels {

struct CorpusKernel {
  std::string name; ///< "integer_i32_i32_ragged"
  std::string text; ///< a module with @entry
  Dim3 block, grid;
};

/// Every operation on every type it is emitted for: of a launch of one thread,
/// of one whose blocks fit, and of one whose last block does not; and every
/// type in a launch of two dimensions, on memory with strides, and of three.
std::vector<CorpusKernel> corpusKernels();

} // namespace mgpu::kernels

#endif // MGPU_TESTS_UNIT_KERNELS_CORPUS_H

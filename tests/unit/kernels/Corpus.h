// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_KERNELS_CORPUS_H
#define MGPU_TESTS_UNIT_KERNELS_CORPUS_H

// Generated kernels, each of a few operations on one type in one shape of
// launch: what the emitter can write.
#include "support/Types.h"

#include <cstddef>
#include <cstdint>

#include <string>
#include <vector>

namespace mgpu::kernels {

/// An argument, and which values of its type no operation of the kernel leaves
/// undefined.
struct CorpusBuffer {
  enum Values {
    Any,      ///< any integer; floats below 8 by quarters
    Positive, ///< 1 to 7
    Divisor,  ///< neither 0 nor -1
    Power,    ///< -3 to 7, but 0
    Rough     ///< floats from 0 to 8, with all bits; any integer
  };
  std::string type;
  size_t count;
  Values values = Any;
};

struct CorpusKernel {
  std::string name; ///< "integer_i32_i32_ragged"
  std::string text; ///< a module with @entry
  Dim3 block, grid;
  std::vector<CorpusBuffer> buffers; ///< in the order of the arguments

  /// Bytes for each buffer.
  std::vector<std::vector<std::byte>> fill(uint32_t seed) const;
};

size_t bytesOf(const std::string &type);
/// Whether element k of both is the same, or a NaN in both.
bool sameElement(const std::string &type, const std::byte *a,
                 const std::byte *b);

/// Every operation on every type it is emitted for: in a launch of one thread,
/// in one whose blocks fit, and in one whose last block does not; and every
/// type in a launch of two dimensions, on memory with strides, and of three.
std::vector<CorpusKernel> corpusKernels();

} // namespace mgpu::kernels

#endif // MGPU_TESTS_UNIT_KERNELS_CORPUS_H

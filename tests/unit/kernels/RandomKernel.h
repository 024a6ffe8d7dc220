// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_KERNELS_RANDOMKERNEL_H
#define MGPU_TESTS_UNIT_KERNELS_RANDOMKERNEL_H

// Random kernels, printed as MLIR for the emitters and interpreted here, all
// threads of a block in step under a mask, so that a barrier needs nothing.
#include "support/Types.h"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace mgpu::kernels::random {

enum Kind { I32, I64, F32, Index, Bool };
struct Op {
  enum Code {
    Constant, ///< of `bits`
    Thread,   ///< thread id in x, y or z (`bits`)
    BlockX,
    Arith,   ///< `name` of two operands
    Compare, ///< arith.cmpi `name`
    Select,
    ToFloat,  ///< sitofp of an i32
    ToBits,   ///< the bits of an f32, 0 of a NaN
    Cast,     ///< `name` of one operand
    Load,     ///< the input at operand 0, modulo its size
    Exchange, ///< operand 0 of the thread whose number is operand 1 modulo the
              ///< threads of the block, through workgroup memory
    Lane,     ///< its number in the subgroup
    Subgroup, ///< the subgroup's number in the block
    FromLane, ///< operand 0 of lane 0
    Swap,     ///< operand 0 of the lane whose number differs by XOR `bits`
    Sum,      ///< operand 0 of all lanes of the subgroup, added up
    If,       ///< operand 0; both bodies yield
    For,      ///< operand 0 modulo 4 times; carries operand 1
    While,    ///< operand 0 modulo 8 times; carries operand 1
  } code;
  int result = -1;
  std::vector<int> operands = {};
  std::string name = {};
  uint64_t bits = 0;
  std::vector<std::vector<Op>> bodies = {};
  std::vector<int> arguments = {},
                   yields = {}; ///< of bodies; argument 0 counts
};

/// A kernel that writes one i32 per thread of the launch.
struct Kernel {
  static Kernel make(uint64_t seed);

  Dim3 block;
  uint32_t blocks = 3;
  std::vector<Op> body;
  std::vector<Kind> kinds;      ///< of each value
  std::vector<bool> uniform;    ///< whether threads surely agree
  std::vector<bool> alike;      ///< whether lanes of a subgroup surely do
  std::string bodyText() const; ///< leaves the result in name(result())
  /// Whether its threads exchange values, or know their lanes.
  bool exchanges() const;
  int result() const { return body.back().result; }
  std::vector<int32_t> interpret(const std::vector<int32_t> &input) const;
};

/// A function that runs the one of `kernels`, all of one launch shape, that
/// its last argument names, where there are several: compiling many at once
/// saves what each module costs. Its arguments: input and output, one i32 for
/// each thread of the launch, and the kernel's number.
std::string textOf(const std::vector<Kernel> &kernels);

std::vector<int32_t> randomInput(const Kernel &kernel, uint64_t seed);

/// Calls `test` with kernels of `count` seeds from `first` on, in batches of
/// at most `batch` of one block, whose threads all exchange values or none do.
struct Batch {
  std::vector<uint64_t> seeds;
  std::vector<Kernel> kernels;
};
void inBatches(uint64_t first, uint64_t count, size_t batch,
               const std::function<void(const Batch &)> &test);

/// MGPU_KERNEL_SEEDS asks for other seeds, as FIRST:COUNT.
std::pair<uint64_t, uint64_t> seedRange(uint64_t first, uint64_t count);

} // namespace mgpu::kernels::random

#endif // MGPU_TESTS_UNIT_KERNELS_RANDOMKERNEL_H

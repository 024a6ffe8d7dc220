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

enum Kind { I8, I16, I32, I64, Index, F32, Bool };
constexpr unsigned bitsOf(Kind kind) {
  constexpr unsigned bits[] = {8, 16, 32, 64, 64, 32, 1};
  return bits[kind];
}
/// What is kept of the bits of a value: integers are sign-extended, but Bool.
uint64_t kept(Kind kind, uint64_t bits);

struct Op {
  enum Code {
    Constant, ///< of `bits`
    Thread,   ///< thread id in x, y or z (`bits`)
    BlockX,
    Arith,   ///< arith.`name` of two operands, or index.`name` where `bits`
    Compare, ///< arith.cmpi `name`
    Select,
    ToFloat, ///< sitofp
    ToBits,  ///< the bits of an f32, 0 of a NaN
    Cast,    ///< `name` of one operand
    Load,    ///< the input at operand 0, modulo its size
    Count,   ///< adds operand 0 to the last element of the output, atomically
    Array,   ///< makes array `bits`, each element operand 0
    Put,     ///< array `bits`, element operand 0 modulo its size, is operand 1
    Take,    ///< that element; both name the argument they go through
    PutAt,   ///< the same where it is known to be below the size
    TakeAt,
    Exchange, ///< operand 0 of the thread whose number is operand 1 modulo the
              ///< threads of the block, through workgroup memory
    Lane,     ///< its number in the subgroup
    Subgroup, ///< the subgroup's number in the block
    FromLane, ///< operand 0 of lane 0
    Shuffle,  ///< gpu.shuffle `name` of operand 0 by operand 1, width `bits`
    Rotate,   ///< gpu.rotate of operand 0 by `bits` in all 32 lanes
    Reduce,   ///< operand 0 of all lanes of the subgroup by arith.`name`
    If,       ///< operand 0; one body only where it has no results
    For,      ///< from operand 0 to 1, step `bits`; carries the others
    While,    ///< operand 0 times; carries the others into the body before the
              ///< condition, whose yields are results and go into the other
  } code;
  std::vector<int> operands = {};
  std::string name = {};
  uint64_t bits = 0;
  std::vector<int> results = {};
  struct Body {
    std::vector<int> arguments; ///< a loop's; the first one counts
    std::vector<Op> ops;
    std::vector<int> yields;
  };
  std::vector<Body> bodies = {};
};
using Body = Op::Body;

/// Memory that each thread has some elements of for itself.
struct Array {
  Kind kind;
  uint32_t size;
  enum Place {
    Private,
    Workgroup, ///< a thread's elements lie side by side
    Rows,      ///< so they do in the buffer of the two last arguments
    Columns,   ///< each beside the same element of other threads, there
  } place;
  uint32_t slot; ///< its part of the buffer
};
inline constexpr uint32_t maxArraySize = 16, numSlots = 4;

/// A kernel that writes one i32 per thread of the launch, and a count.
struct Kernel {
  static Kernel make(uint64_t seed);

  Dim3 block;
  uint32_t blocks = 3;
  std::vector<Op> body;
  std::vector<Kind> kinds; ///< of each value
  std::vector<Array> arrays;

  uint64_t threads() const { return block.volume() * blocks; }
  int result() const { return body.back().results[0]; }
  /// Whether its threads exchange values, know their lanes or share memory.
  bool exchanges() const;
  std::vector<int32_t> interpret(const std::vector<int32_t> &input) const;
};

/// What a kernel is run with.
struct Memory {
  Memory(const Kernel &kernel, uint64_t seed);

  /// The arguments of textOf's function. The last buffer is two arguments.
  std::vector<uint64_t> arguments(size_t which);

  std::vector<int32_t> input, output;
  std::vector<uint64_t> slots;
};

/// A function that runs the one of `kernels`, all of one launch shape, that
/// its last argument names, where there are several: compiling many at once
/// saves what each module costs.
std::string textOf(const std::vector<Kernel> &kernels);

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

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_DAG_KERNELFACTS_H
#define MGPU_PLANNER_DAG_KERNELFACTS_H

// Facts about what the text of a kernel does. An importer finds them once,
// where it makes the kernel, and they go with the kernel in a DAG, in its text
// and in bundles. Nothing that must hold is decided by them: they say how long
// a launch may take.

#include "planner/dag/AffineForm.h"
#include "support/Types.h"

#include <string>

namespace mgpu::planner {

/// Bytes that one instruction of a thread loads or stores at most.
inline constexpr int64_t widestAccess = 16;

/// C += A * B, or C = A * B, `batch` times.
struct Product {
  double m = 0, n = 0, k = 0, batch = 1;
  ElementType factors = ElementType::F32, sums = ElementType::F32;
  bool overwrites = false; ///< C is not read
  bool isTurned = false;   ///< B is stored n x k

  uint32_t factorBytes() const { return sizeBytes(factors); }
  uint32_t sumBytes() const { return sizeBytes(sums); }
  /// Whether the factors are of a library's narrow types, f16 and bf16, or of
  /// its wide ones, f32 and f64.
  bool isNarrow() const {
    return factors == ElementType::F16 || factors == ElementType::BF16;
  }
  bool isWide() const {
    return factors == ElementType::F32 || factors == ElementType::F64;
  }
  double flops() const { return 2 * batch * m * n * k; }
  bool operator==(const Product &) const = default;
};

/// How a GPU computes a launch: what changes none of its bits.
struct LaunchWidth {
  /// Threads of the source, neighbours along x, that one thread is.
  uint32_t vector = 1;
  /// Blocks of the source, neighbours along x, that lie beside each other in
  /// one block, a warp each.
  uint32_t rows = 1;
  /// Threads of a block along x of a kernel that may have any; 0: as in the
  /// source.
  uint32_t blockX = 0;
  /// Trips of loops whose loads are under way at once; 0: as the compiler
  /// likes.
  uint32_t unroll = 0;
  /// Blocks that must fit one multiprocessor, so that a thread has no more
  /// registers than it needs.
  uint32_t minBlocks = 1;
  // Fields that only a configuration sets.
  uint32_t blockY = 0, blockZ = 0; ///< as blockX
  /// Threads of the source along x that one thread is one after the other, or,
  /// where blocks are those of the source, blocks that one block is.
  uint32_t items = 1;
  bool isStaged = false; ///< what threads share, or read across, is copied to
                         ///< workgroup memory first
  auto operator<=>(const LaunchWidth &) const = default;
};

/// The facts of a kernel in its largest launch. Without steps or a product
/// nothing is known of it.
struct KernelFacts {
  /// Where steps are.
  struct Place {
    double times = 1;   ///< that a thread comes there, the mean of all
    uint64_t trips = 1; ///< of the loop it is in; UINT64_MAX: not known
    bool operator==(const Place &) const = default;
  };
  /// A buffer of the launch.
  struct Buffer {
    bool isWritten = false; ///< by the kernel
    uint32_t loads = 0;     ///< operations that load of it
    bool operator==(const Buffer &) const = default;
  };
  /// An operation of the text. A load that a compiler has in a register by then
  /// is none.
  struct Step {
    enum class Kind : uint8_t {
      Compute,
      BlockReduction,    ///< over the threads of a block
      SubgroupReduction, ///< over those of a subgroup
      Shared,            ///< access of memory that is not a buffer
      Load,
      Store, ///< or an atomic operation
    };
    Kind kind = Kind::Compute;
    uint32_t place = 0;
    double instructions = 0; ///< Compute: of each thread
    /// Compute: the function of an element, as the math dialect has it ("exp",
    /// "exp.f64"), or a division; empty: another operation.
    std::string function = {};
    bool isAddress = false; ///< Compute: loops go on by one addition
    /// Neighbours along x do the same, or at the same place.
    bool isCommon = false;
    uint32_t buffer = 0;
    uint32_t width = 1, bytes = 1; ///< of an element, of what a thread accesses
    /// Elements from the buffer's first: how lanes and blocks differ. None
    /// where they differ in another way.
    std::optional<AffineForm> address;
    bool operator==(const Step &) const = default;
  };

  std::string kernel; ///< KernelSpec::hash
  Dim3 grid, block;   ///< of the launch
  std::optional<Product> product;
  AffineCounters counters;
  std::vector<Place> places;
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  bool operator==(const KernelFacts &) const = default;

  /// Whether all figures are within what can be counted: an importer keeps no
  /// others, and from a file come no others.
  bool areCountable() const;
};

void fields(JsonFields &f, KernelFacts &facts);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_DAG_KERNELFACTS_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_SPACE_KERNELCONFIG_H
#define MGPU_KERNELS_SPACE_KERNELCONFIG_H

// One variant of a kernel: a value for each of its axes; and numbers that
// follow from it. The first axes are the parameters that every kernel has, the
// rest are its own macros (tunables).

#include "planner/dag/KernelSpec.h"

#include <array>
#include <utility>

namespace mgpu::kernels {

enum class KernelParameter : uint8_t {
  BlockX, ///< threads of a block
  BlockY,
  BlockZ,
  Items,  ///< how many threads of the source, BlockX apart along x, one thread
          ///< is; in a kernel that keeps its block, how many blocks of the
          ///< source one block is, one after the other
  Vector, ///< Cuda: neighbours along x that one thread is, computed together.
          ///< Host: lanes of a vector; 0 lets LLVM choose
  Unroll, ///< for innermost sequential loops; 0: the compiler chooses
  MinBlocks, ///< Cuda: blocks that must fit one multiprocessor
  TileX,     ///< Host: threads that run a sequential loop together, their
  TileY,     ///< values in registers; both 0: chosen by the emitter.
             ///< Cuda: threads of the source along x and y, blockX and blockY
             ///< apart, that one thread of a matmul is; else 0
  ClusterX,  ///< Cuda: neighbouring blocks along x that a GPU of sm_90 or
             ///< later runs at once on multiprocessors near each other
};
inline constexpr size_t numKernelParameters = 10;
/// "block_x", "block_y", "block_z", "items", "vector", "unroll", "min_blocks",
/// "tile_x", "tile_y", "cluster_x".
std::string_view toString(KernelParameter parameter);

/// A value for each parameter; those a target does not have keep the default.
struct KernelConfig {
  std::array<uint32_t, numKernelParameters> values{1, 1, 1, 1, 0,
                                                   0, 1, 0, 0, 1};
  /// Values of KernelSpace::tunables, in their order.
  uint32_t numTunables = 0;
  std::array<uint32_t, planner::mostKernelTunables> tunables{};

  uint32_t &operator[](KernelParameter p) { return values[size_t(p)]; }
  uint32_t operator[](KernelParameter p) const { return values[size_t(p)]; }
  /// The value on an axis: a parameter, or numKernelParameters plus a tunable.
  uint32_t &at(size_t axis) {
    return axis < numKernelParameters ? values[axis]
                                      : tunables[axis - numKernelParameters];
  }
  uint32_t at(size_t axis) const {
    return const_cast<KernelConfig *>(this)->at(axis);
  }
  size_t numAxes() const { return numKernelParameters + numTunables; }
  Dim3 block() const { return {values[0], values[1], values[2]}; }
  auto operator<=>(const KernelConfig &) const = default;
};

/// "block_x=256 block_y=1 ...": every parameter, in their order, then
/// "tunables=16,4" where there are any.
std::string toText(const KernelConfig &config);
/// Reads toText's form; parameters left out keep those of `base`. Usage for an
/// unknown name or a value that is not a number.
Result<KernelConfig> parseKernelConfig(std::string_view text,
                                       KernelConfig base = {});

/// A whole number that follows from a configuration, as data, so that it can be
/// stored: Formula(P::BlockX) * P::BlockY * P::BlockZ, the threads of a block.
class Formula {
public:
  Formula(int64_t number = 0) : steps{{Number, number}} {}
  Formula(KernelParameter parameter) : steps{{Axis, int64_t(parameter)}} {}
  /// The value of tunable `number`.
  static Formula tunable(size_t number);

  friend Formula operator+(Formula a, const Formula &b) {
    return std::move(a).with(b, Add);
  }
  friend Formula operator*(Formula a, const Formula &b) {
    return std::move(a).with(b, Multiply);
  }
  /// The least multiple of `unit` that is not below it.
  Formula roundedUp(int64_t unit) && {
    return std::move(*this).with(unit, RoundUp);
  }

  /// INT64_MAX where a step's result is larger than any figure here, or cannot
  /// be worked out: a formula that was read may come from anyone.
  int64_t of(const KernelConfig &config) const;
  bool operator==(const Formula &) const = default;

  friend void fields(JsonFields &f, Formula &formula);

private:
  enum Op : int64_t { Number, Axis, Add, Multiply, RoundUp };
  Formula with(const Formula &b, Op op) &&;

  /// In postfix order: an Op, and the number or the axis.
  std::vector<std::array<int64_t, 2>> steps;
};

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_SPACE_KERNELCONFIG_H

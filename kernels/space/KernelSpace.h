// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_SPACE_KERNELSPACE_H
#define MGPU_KERNELS_SPACE_KERNELSPACE_H

// The variants of one kernel, and how each is launched. The compiler half says
// which are legal (pipeline/compiler/KernelBuild.h); a tuner enumerates them.
// All of them compute the same bits, and none changes the DAG: a KernelCall's
// grid stays that of the source.

#include "planner/dag/KernelSpec.h"
#include "support/Result.h"
#include "support/Types.h"

#include <array>
#include <span>
#include <string>
#include <vector>

namespace mgpu::planner {

enum class KernelParameter : uint8_t {
  BlockX, ///< threads of a block
  BlockY,
  BlockZ,
  Items,  ///< threads of the source, BlockX apart along x, that one thread
          ///< is; of a kernel that keeps its block: blocks of the source
          ///< that one block is, one after the other
  Vector, ///< Cuda: neighbours along x that one thread is, computed together.
          ///< Host: lanes of a vector; 0 lets LLVM choose
  Unroll, ///< of the innermost sequential loops; 0 lets the compiler choose
  MinBlocks, ///< Cuda: blocks that must fit one multiprocessor
  TileX,     ///< Host: threads that run a sequential loop together, their
  TileY,     ///< values in registers; both 0: chosen by the emitter.
             ///< Cuda: threads of the source along x and y, blockX and blockY
             ///< apart, that one thread of a matrix product is; else 0
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
  /// Of KernelSpace::tunables, in their order.
  uint32_t numTunables = 0;
  std::array<uint32_t, mostKernelTunables> tunables{};

  uint32_t &operator[](KernelParameter p) { return values[size_t(p)]; }
  uint32_t operator[](KernelParameter p) const { return values[size_t(p)]; }
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

enum class KernelTarget : uint8_t { Host, Cuda };

/// The values one parameter may have.
struct KernelChoice {
  KernelParameter parameter;
  std::vector<uint32_t> values; ///< ascending, never empty
  std::string reason; ///< where there is one value: why there is no other
  bool operator==(const KernelChoice &) const = default;
};

/// What a block keeps of a buffer in shared memory where the last tunable,
/// MGPU_STAGE, is 1: an element for each of its threads, MGPU_VECTOR of the
/// source's each, along some axes of the launch, and `halo` more.
struct KernelTile {
  uint32_t elementBytes = 0;
  std::array<bool, 3> along{}; ///< of x, y and z
  std::array<uint32_t, 3> halo{};
  bool operator==(const KernelTile &) const = default;
};

/// Points of a space that one rule refuses.
struct KernelRefusal {
  std::string rule;     ///< "threads of a block"
  uint64_t count = 0;   ///< of the product of the choices
  KernelConfig example; ///< the first of them
  std::string reason;   ///< of the example
};

struct KernelSpace {
  KernelTarget target = KernelTarget::Host;
  Dim3 block;   ///< of the source
  Dim3 maxGrid; ///< the largest of its launches, in blocks of the source
  bool reshapable = false; ///< any block that covers the launch is legal
  std::string reason;      ///< why, or why not
  /// Workgroup memory of one block of the source, static and dynamic.
  uint32_t sharedBytes = 0;
  /// Of a matrix product: bytes of an element, of which a block stages, for
  /// each thread of the source it covers along x and along y and
  /// `stagedPadding` more, as many as the product of the first `stagedTunables`
  /// tunables says.
  uint32_t stagedBytes = 0, stagedTunables = 1, stagedPadding = 1;
  /// The stages are dynamic shared memory, of which a GPU gives more.
  bool stagesAreDynamic = false;
  /// Of one on tensor cores: what each of the blockY warps of a block covers
  /// along x and y is a multiple of it. The last tunable is how many of them
  /// lie one above the other.
  uint32_t warpTile = 0;
  /// Producer warps, counted in blockY, that only load data for the others.
  uint32_t loadingWarps = 0;
  /// Of one whose sums, tileX * tileY for each thread, stay in registers: what
  /// a thread needs beside them; 0 where the compiler may do as it likes.
  uint32_t registersBesideSums = 0;
  std::vector<KernelChoice> choices; ///< every parameter, in their order
  /// Those of a user's kernel, of a matrix product's text, or MGPU_STAGE.
  std::vector<KernelTunable> tunables;
  std::vector<KernelTile> tiles;
  KernelConfig defaults; ///< always legal
  bool operator==(const KernelSpace &) const = default;

  const KernelChoice &choice(KernelParameter p) const {
    return choices[size_t(p)];
  }
  /// Invalid, with the reason, for a configuration that is not legal.
  Result<void> check(const KernelConfig &config) const;
  /// Points of the product of the choices, legal or not; UINT64_MAX: as many
  /// or more.
  uint64_t productSize() const;
  /// The legal configurations in lexicographic order, at most `limit`; adds
  /// what was refused, by rule, to `refused` where given.
  std::vector<KernelConfig>
  legal(uint64_t limit = UINT64_MAX,
        std::vector<KernelRefusal> *refused = nullptr) const;

  /// Workgroup memory of a block, as far as it is known without compiling.
  uint64_t sharedBytesOf(const KernelConfig &config) const;
  /// Threads of the source that one block of a launch covers.
  Dim3 covered(const KernelConfig &config) const;
  /// The grid to launch with for a call whose grid, in blocks of the source,
  /// is `sourceGrid`: whole clusters. A host object knows it itself and is
  /// launched with `sourceGrid` (kernels/abi/HostKernelAbi.h).
  Dim3 launchGrid(const KernelConfig &config, Dim3 sourceGrid) const;
};

/// A part of the space: `around`, which is legal and becomes the default, and
/// others near it, at most `most` legal configurations together. `reason` is
/// why a parameter has one value.
KernelSpace narrowed(const KernelSpace &space, const KernelConfig &around,
                     uint64_t most, const std::string &reason);

} // namespace mgpu::planner

#endif // MGPU_KERNELS_SPACE_KERNELSPACE_H

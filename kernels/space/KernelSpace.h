// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_SPACE_KERNELSPACE_H
#define MGPU_KERNELS_SPACE_KERNELSPACE_H

// The variants of one kernel, and how each is launched. The compiler half says
// which are legal (pipeline/compiler/KernelBuild.h); a tuner enumerates them.
// All of them compute the same bits, and none changes the DAG: a KernelCall's
// grid stays that of the source.

#include "kernels/space/KernelConfig.h"

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace mgpu::kernels {

enum class KernelTarget : uint8_t { Host, Cuda };

/// The values that a parameter or a tunable may have.
struct KernelAxis {
  std::string name; ///< "block_x", or the macro of a tunable
  /// Ascending for a parameter, the default first for a tunable; never empty.
  std::vector<uint32_t> values;
  std::string reason; ///< where there is one value: why there is no other
  bool operator==(const KernelAxis &) const = default;
};

enum class Relation : uint8_t {
  AtMost,
  Equal,
  MultipleOf, ///< where the right side is 0, it asks for nothing
  ZeroTogether,
};

/// A rule that legal configurations keep: its left side has the relation to its
/// right side.
struct KernelConstraint {
  std::string rule; ///< "threads of a block"
  Formula left;
  Relation relation = Relation::AtMost;
  Formula right;
  /// Says what is wrong with a configuration that breaks it; $left and $right
  /// stand for the values of the sides.
  std::string reason;
  bool bindsDefaults = false; ///< the defaults keep others whatever they are
  bool operator==(const KernelConstraint &) const = default;
};

/// Points of a space that one rule refuses.
struct KernelRefusal {
  std::string rule;     ///< "threads of a block"
  uint64_t count = 0;   ///< among all that the choices make
  KernelConfig example; ///< the first of them
  std::string reason;   ///< what the rule says of the example
};

struct KernelSpace {
  using P = KernelParameter;

  KernelTarget target = KernelTarget::Host;
  Dim3 block;   ///< the source's block
  Dim3 maxGrid; ///< the largest of its launches, in blocks of the source
  bool reshapable = false; ///< any block that covers the launch is legal
  std::string reason;      ///< why, or why not
  /// Threads of the source that one block covers, along x, y and z.
  std::array<Formula, 3> covers{P::BlockX, P::BlockY, P::BlockZ};
  /// Bytes of workgroup memory of a block, as far as they are known without
  /// compiling. A GPU gives more where they are dynamic.
  Formula sharedBytes;
  bool sharedIsDynamic = false;
  /// Every parameter, in their order, then tunables: those of a user's kernel,
  /// of a matmul's text, or MGPU_STAGE.
  std::vector<KernelAxis> axes;
  std::vector<KernelConstraint> constraints; ///< the first one broken counts
  KernelConfig defaults;                     ///< always legal
  bool operator==(const KernelSpace &) const = default;

  const KernelAxis &choice(P p) const { return axes[size_t(p)]; }
  KernelAxis &choice(P p) { return axes[size_t(p)]; }
  std::span<const KernelAxis> tunables() const {
    return std::span(axes).subspan(std::min(axes.size(), numKernelParameters));
  }
  /// The first rule that `config`, whose values are offered, breaks; or null.
  const KernelConstraint *broken(const KernelConfig &config) const;
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

  /// Offers the default alone of each parameter.
  void offerDefaults(const std::string &reason);
  /// Offers these values and the default; `reason` is kept where it is alone.
  void offer(P parameter, std::set<uint32_t> values,
             const std::string &reason = "");
  /// The first value becomes the default.
  void addTunable(const planner::KernelTunable &tunable) {
    defaults.tunables[defaults.numTunables++] = tunable.values.front();
    axes.push_back({tunable.name, tunable.values, ""});
  }
  void require(std::string rule, Formula left, Relation relation, Formula right,
               std::string reason) {
    constraints.push_back({std::move(rule), std::move(left), relation,
                           std::move(right), std::move(reason)});
  }
  /// Adds the constraints of every launch: no more threads in a block than any
  /// GPU takes, whole warps where the block is free, and no block (or cluster)
  /// of which half or more has no work. `covers` is set before.
  void requireLaunch();
  /// No more workgroup memory than a kernel has without asking the GPU.
  void requireStaticShared();

  uint64_t sharedBytesOf(const KernelConfig &config) const {
    return uint64_t(std::max<int64_t>(sharedBytes.of(config), 0));
  }
  /// The elements of `covers`, and no less than 1.
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

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_SPACE_KERNELSPACE_H

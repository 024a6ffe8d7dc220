// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_SPACE_SPACETEXT_H
#define MGPU_KERNELS_SPACE_SPACETEXT_H

// The space of a kernel as JSON, for bundles and the cache of texts: a machine
// without the compiler tunes by it.

#include "kernels/space/KernelSpace.h"

namespace mgpu {
class JsonFields;
} // namespace mgpu

namespace mgpu::kernels {

/// Reading refuses a space that its own functions cannot work on.
void fields(JsonFields &f, KernelSpace &space);

} // namespace mgpu::kernels

namespace mgpu::kernels {

/// One line; parseSpace() reads it.
std::string spaceText(const KernelSpace &space);
/// Invalid where spaceText() would not have written it, and as checkSpace().
Result<KernelSpace> parseSpace(std::string_view text);

/// Whether figures that come from anyone are within what emitters write, so
/// that products of them stay countable, and the defaults are legal. Invalid
/// with the reason.
Result<void> checkSpace(const KernelSpace &space);

/// Reads a rule that a user writes for the tunables of his kernel: "TILE *
/// STAGES <= 48", "ITEMS == 2 * UNROLL" or "ITEMS % UNROLL == 0". A side is a
/// sum of products of numbers and names of `tunables`. Usage for other texts.
Result<KernelConstraint>
parseRule(std::string_view text,
          std::span<const planner::KernelTunable> tunables);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_SPACE_SPACETEXT_H

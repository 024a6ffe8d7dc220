// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_SPACE_TUNABLERULE_H
#define MGPU_KERNELS_SPACE_TUNABLERULE_H

#include "kernels/space/KernelSpace.h"

namespace mgpu::kernels {

/// Reads a rule that a user writes for the tunables of his kernel: "TILE *
/// STAGES <= 48", "ITEMS == 2 * UNROLL" or "ITEMS % UNROLL == 0". A side is a
/// sum of products of numbers and names of `tunables`. Usage for other texts.
Result<KernelConstraint>
parseRule(std::string_view text,
          std::span<const planner::KernelTunable> tunables);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_SPACE_TUNABLERULE_H

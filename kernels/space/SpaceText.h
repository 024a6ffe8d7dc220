// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_SPACE_SPACETEXT_H
#define MGPU_KERNELS_SPACE_SPACETEXT_H

// The space of a kernel as text, for bundles: who has no compiler tunes by it.

#include "kernels/space/KernelSpace.h"

namespace mgpu::kernels {

/// One line; parseSpace() reads it.
std::string spaceText(const planner::KernelSpace &space);
/// Invalid where spaceText() would not have written it: then, too, where the
/// defaults are not legal in it, or a block of them has no threads.
Result<planner::KernelSpace> parseSpace(std::string_view text);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_SPACE_SPACETEXT_H

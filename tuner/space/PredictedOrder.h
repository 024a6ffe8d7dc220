// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_SPACE_PREDICTEDORDER_H
#define MGPU_TUNER_SPACE_PREDICTEDORDER_H

#include "kernels/space/KernelConfig.h"

#include <span>
#include <vector>

namespace mgpu::tuner {

/// At most `most` of the configurations, as indices, the one first that is
/// predicted to take least. Where several are predicted to take the same, to a
/// percent, it is the one that differs in least from `defaults`.
std::vector<size_t>
fastestPredicted(std::span<const kernels::KernelConfig> configs,
                 std::span<const double> us,
                 const kernels::KernelConfig &defaults, size_t most);

} // namespace mgpu::tuner

#endif // MGPU_TUNER_SPACE_PREDICTEDORDER_H

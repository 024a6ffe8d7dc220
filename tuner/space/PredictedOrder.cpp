// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/space/PredictedOrder.h"

#include <algorithm>
#include <utility>

namespace mgpu::tuner {

using kernels::KernelConfig;

static size_t differences(const KernelConfig &config,
                          const KernelConfig &other) {
  size_t count = 0;
  for (size_t k = 0; k < config.numAxes(); ++k)
    count += config.at(k) != other.at(k);
  return count;
}

std::vector<size_t> fastestPredicted(std::span<const KernelConfig> configs,
                                     std::span<const double> us,
                                     const KernelConfig &defaults,
                                     size_t most) {
  constexpr double equal = 1.01;
  std::vector<std::pair<double, size_t>> order;
  for (size_t k = 0; k < std::min(configs.size(), us.size()); ++k)
    order.push_back({us[k], k});
  std::ranges::sort(order);
  std::vector<size_t> found;
  for (size_t k = 0; k < order.size() && found.size() < most;) {
    const double least = order[k].first;
    size_t best = order[k].second;
    for (; k < order.size() && order[k].first <= least * equal; ++k)
      if (differences(configs[order[k].second], defaults) <
          differences(configs[best], defaults))
        best = order[k].second;
    found.push_back(best);
  }
  return found;
}

} // namespace mgpu::tuner

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/measure/StoppingCriterion.h"

#include <algorithm>

namespace mgpu::bench {

Stop StoppingCriterion::check(std::span<const double> samples, double seconds) {
  const size_t count = samples.size();
  if (count < options.minSamples)
    return seconds >= options.maxSeconds && count > 0 ? Stop::Time : Stop::No;
  if (count >= nextLook) {
    nextLook = count + std::max<size_t>(count / 4, 1);
    std::vector<double> ascending(samples.begin(), samples.end());
    std::sort(ascending.begin(), ascending.end());
    Interval found = medianInterval(ascending);
    double reach =
        std::max(found.high - found.middle, found.middle - found.low);
    if (reach <= options.relativeError * found.middle)
      return Stop::Precise;
  }
  if (count >= options.maxSamples)
    return Stop::Samples;
  return seconds >= options.maxSeconds ? Stop::Time : Stop::No;
}

} // namespace mgpu::bench

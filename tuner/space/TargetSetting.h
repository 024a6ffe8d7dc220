// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_SPACE_TARGETSETTING_H
#define MGPU_TUNER_SPACE_TARGETSETTING_H

// A choice that a target offers beside plan and kernels, such as how a
// collective is carried out. The target describes it; the tuner searches it.

#include <string>
#include <vector>

namespace mgpu::tuner {

struct TargetSetting {
  std::string name; ///< "algorithm.all_reduce.8192x4"; also of its pair
  /// The default first. One: there is no choice.
  std::vector<std::string> values;
  std::string reason; ///< why there is one only; else empty
};

} // namespace mgpu::tuner

#endif // MGPU_TUNER_SPACE_TARGETSETTING_H

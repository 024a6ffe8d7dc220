// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_SWEEP_H
#define MGPU_TESTS_UNIT_SWEEP_H

// How far tests go through seeds and configurations.

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace mgpu {

/// `all` with MGPU_SWEEPS=all in the environment (make check-all), else `part`.
inline uint64_t sweep(uint64_t part, uint64_t all) {
  const char *asked = std::getenv("MGPU_SWEEPS");
  return asked && std::string_view(asked) == "all" ? all : part;
}

} // namespace mgpu

#endif // MGPU_TESTS_UNIT_SWEEP_H

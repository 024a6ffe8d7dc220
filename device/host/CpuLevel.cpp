// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/host/CpuLevel.h"

namespace mgpu::device {

std::vector<std::string_view> cpuLevels() {
  std::vector<std::string_view> levels;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4"))
    levels.push_back("x86-64-v4");
  if (__builtin_cpu_supports("x86-64-v3"))
    levels.push_back("x86-64-v3");
  if (__builtin_cpu_supports("x86-64-v2"))
    levels.push_back("x86-64-v2");
#endif
  return levels;
}

} // namespace mgpu::device

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_CPULEVEL_H
#define MGPU_DEVICE_HOST_CPULEVEL_H

#include <string_view>
#include <vector>

namespace mgpu::device {

/// The levels of the x86-64 psABI that host kernels are made for and this
/// processor runs, best first: "x86-64-v4", "x86-64-v3", "x86-64-v2". None on
/// another architecture.
std::vector<std::string_view> cpuLevels();

} // namespace mgpu::device

#endif // MGPU_DEVICE_HOST_CPULEVEL_H

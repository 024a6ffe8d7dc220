// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/host/HostTarget.h"

#include "device/host/HostDriver.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

namespace mgpu::device {

Result<uint32_t> hostTargetDevices(const std::string &target,
                                   uint32_t numDevices) {
  if (std::string kind = target.substr(0, target.find(':'));
      !kind.empty() && kind != "host")
    return fail(ErrorKind::Usage,
                fmt::format("unknown target '{}'; use host or host:N", target));
  uint32_t count = numDevices;
  if (size_t colon = target.find(':'); colon != std::string::npos) {
    const char *first = target.data() + colon + 1;
    const char *last = target.data() + target.size();
    auto [end, error] = std::from_chars(first, last, count);
    if (error != std::errc() || end != last || count == 0)
      return fail(
          ErrorKind::Usage,
          fmt::format("target '{}': N in host:N is a number of devices, "
                      "at least 1",
                      target));
  }
  if (count < numDevices)
    return fail(ErrorKind::Absent,
                fmt::format("the program is of {} devices, target '{}' has {}",
                            numDevices, target, count));
  return std::max(count, 1u);
}

Result<std::unique_ptr<Driver>> openHostTarget(const std::string &target,
                                               uint32_t numDevices,
                                               uint32_t numThreads) {
  MGPU_TRY_ASSIGN(uint32_t devices, hostTargetDevices(target, numDevices));
  return createHostDriver(devices, numThreads);
}

} // namespace mgpu::device

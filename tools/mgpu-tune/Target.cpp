// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/Target.h"

#include "device/host/HostDriver.h"

#include <charconv>
#include <fmt/format.h>

namespace mgpu::tune {

Result<uint32_t> targetDevices(const std::string &target, uint32_t numDevices) {
  std::string kind = target.substr(0, target.find(':'));
  if (kind == "cuda" || kind == "sim")
    return fail(ErrorKind::Unsupported,
                fmt::format("target '{}': this version runs programs on "
                            "'host' only (docs/limits.md)",
                            target));
  if (!kind.empty() && kind != "host")
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
                fmt::format("the program uses {} devices, target '{}' has {}",
                            numDevices, target, count));
  return std::max(count, 1u);
}

Result<std::unique_ptr<device::Driver>>
openTarget(const std::string &target, uint32_t numDevices, uint32_t lanes) {
  MGPU_TRY_ASSIGN(uint32_t devices, targetDevices(target, numDevices));
  return device::createHostDriver(devices, lanes);
}

} // namespace mgpu::tune

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/Target.h"

#include "device/host/HostTarget.h"

#include <fmt/format.h>

namespace mgpu::tune {

Result<std::unique_ptr<device::Driver>> openTarget(const std::string &target,
                                                   uint32_t numDevices) {
  std::string kind = target.substr(0, target.find(':'));
  if (kind == "cuda" || kind == "sim")
    return fail(ErrorKind::Unsupported,
                fmt::format("target '{}': this version runs programs on "
                            "'host' only (docs/limits.md)",
                            target));
  return device::openHostTarget(target, numDevices);
}

} // namespace mgpu::tune

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/api/DeviceProfile.h"

#include <string>

namespace mgpu::device {

static constexpr uint32_t KiB = 1024;
static constexpr uint64_t GB = 1'000'000'000;

// Memory as the data sheets state it, in decimal gigabytes.
static constexpr DeviceProfile profiles[] = {
    {"A100", 80, 1024, 2048, 32, 65536, 255, 164 * KiB, 163 * KiB, 1 * KiB, 108,
     80 * GB, 2.039e6,
     "NVIDIA A100 data sheet (SXM4 80 GB) and A100 architecture white paper"},
    {"H100", 90, 1024, 2048, 32, 65536, 255, 228 * KiB, 227 * KiB, 1 * KiB, 132,
     80 * GB, 3.35e6,
     "NVIDIA H100 data sheet (SXM5) and H100 architecture white paper"},
    {"H200", 90, 1024, 2048, 32, 65536, 255, 228 * KiB, 227 * KiB, 1 * KiB, 132,
     141 * GB, 4.8e6,
     "NVIDIA H200 data sheet (SXM); multiprocessors as of the H100's GH100"},
    {"B200", 100, 1024, 2048, 32, 65536, 255, 228 * KiB, 227 * KiB, 1 * KiB,
     148, 180 * GB, 8.0e6,
     "NVIDIA DGX B200 data sheet, an eighth of it; multiprocessors as the "
     "driver reports them in public deviceQuery listings"},
    {"RTX 4090", 89, 1024, 1536, 24, 65536, 255, 100 * KiB, 99 * KiB, 1 * KiB,
     128, 24 * GB, 1.008e6, "NVIDIA Ada GPU architecture white paper"},
    {"L40S", 89, 1024, 1536, 24, 65536, 255, 100 * KiB, 99 * KiB, 1 * KiB, 142,
     48 * GB, 0.864e6, "NVIDIA L40S data sheet"},
};

std::span<const DeviceProfile> deviceProfiles() { return profiles; }

const DeviceProfile *profileOfArchitecture(std::string_view arch) {
  if (!arch.empty() && (arch.back() == 'a' || arch.back() == 'f'))
    arch.remove_suffix(1);
  for (const DeviceProfile &profile : profiles)
    if (arch == "sm_" + std::to_string(profile.architecture))
      return &profile;
  return nullptr;
}

} // namespace mgpu::device

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/api/DeviceProfile.h"

#include <string>

namespace mgpu::device {

static constexpr uint32_t KiB = 1024;

// NVIDIA's libcudacxx/include/cuda/__device/arch_traits.h (github.com/NVIDIA/
// cccl, efee2cf, and 004ad19 for the others than 8.0, 8.9, 9.0 and 10.0) says
// the same in every column but the name. The first GPU of a capability is the
// one that is shown for it.
static constexpr DeviceProfile profiles[] = {
    {"A100", 80, 1024, 2048, 32, 65536, 255, 164 * KiB, 163 * KiB, 1 * KiB},
    {"H100", 90, 1024, 2048, 32, 65536, 255, 228 * KiB, 227 * KiB, 1 * KiB},
    {"H200", 90, 1024, 2048, 32, 65536, 255, 228 * KiB, 227 * KiB, 1 * KiB},
    {"B200", 100, 1024, 2048, 32, 65536, 255, 228 * KiB, 227 * KiB, 1 * KiB},
    {"RTX 4090", 89, 1024, 1536, 24, 65536, 255, 100 * KiB, 99 * KiB, 1 * KiB},
    {"L40S", 89, 1024, 1536, 24, 65536, 255, 100 * KiB, 99 * KiB, 1 * KiB},
    {"T4", 75, 1024, 1024, 16, 65536, 255, 64 * KiB, 64 * KiB, 0},
    {"RTX A6000", 86, 1024, 1536, 16, 65536, 255, 100 * KiB, 99 * KiB, 1 * KiB},
    {"AGX Orin", 87, 1024, 1536, 16, 65536, 255, 164 * KiB, 163 * KiB, 1 * KiB},
    {"GPU of 8.8", 88, 1024, 1536, 16, 65536, 255, 100 * KiB, 99 * KiB,
     1 * KiB},
    {"B300", 103, 1024, 2048, 32, 65536, 255, 228 * KiB, 227 * KiB, 1 * KiB},
    {"AGX Thor", 110, 1024, 1536, 24, 65536, 255, 228 * KiB, 227 * KiB,
     1 * KiB},
    {"RTX 5090", 120, 1024, 1536, 24, 65536, 255, 100 * KiB, 99 * KiB, 1 * KiB},
    {"GB10", 121, 1024, 1536, 24, 65536, 255, 100 * KiB, 99 * KiB, 1 * KiB},
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

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_API_DEVICEPROFILE_H
#define MGPU_DEVICE_API_DEVICEPROFILE_H

// Describes GPUs that need not be here: enough to say which launches fit and
// how many blocks run at a time.

#include <cstdint>
#include <span>
#include <string_view>

namespace mgpu::device {

/// A GPU, by the limits of its compute capability. device/api/topologies has
/// all that differs between GPUs of one capability. Sources: [G] the table
/// "Technical Specifications per Compute Capability" of the CUDA C++
/// Programming Guide; [O] cuda_occupancy.h of CUDA 13.0. Tests compare with the
/// header what is its own; what it is given, the [G] figures, they cannot.
struct DeviceProfile {
  std::string_view name;
  uint32_t architecture;                ///< 90 for compute capability 9.0
  uint32_t maxThreadsPerBlock;          ///< [G]
  uint32_t maxThreadsPerMultiprocessor; ///< [G]
  uint32_t maxBlocksPerMultiprocessor;  ///< [O]
  uint32_t registersPerMultiprocessor; ///< [G] 32-bit; also the most of a block
  uint32_t maxRegistersPerThread;      ///< [O]
  uint32_t sharedBytesPerMultiprocessor; ///< [O] the largest carve-out
  uint32_t maxSharedBytesPerBlock;       ///< [G] opted in; 48 KiB without
  uint32_t reservedSharedBytesPerBlock;  ///< [G] the driver's
};

/// The GPUs known.
std::span<const DeviceProfile> deviceProfiles();

/// The first GPU of an architecture ("sm_90", "sm_90a"), or null.
const DeviceProfile *profileOfArchitecture(std::string_view arch);

} // namespace mgpu::device

#endif // MGPU_DEVICE_API_DEVICEPROFILE_H

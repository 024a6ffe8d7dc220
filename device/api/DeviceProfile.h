// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_API_DEVICEPROFILE_H
#define MGPU_DEVICE_API_DEVICEPROFILE_H

// What is known of a card without having it: enough to say which launches fit
// and how many blocks run at a time.

#include <cstdint>
#include <span>
#include <string_view>

namespace mgpu::device {

struct DeviceProfile {
  std::string_view name;
  uint32_t architecture; ///< 90 for compute capability 9.0
  // Of the compute capability.
  uint32_t maxThreadsPerBlock;
  uint32_t maxThreadsPerMultiprocessor;
  uint32_t maxBlocksPerMultiprocessor;
  uint32_t registersPerMultiprocessor; ///< 32-bit; also the most of a block
  uint32_t maxRegistersPerThread;
  uint32_t sharedBytesPerMultiprocessor;
  uint32_t maxSharedBytesPerBlock; ///< opted in; 48 KiB without
  uint32_t reservedSharedBytesPerBlock;
  // Of the card.
  uint32_t multiprocessors;
  uint64_t memoryBytes;
  double memoryBytesPerUs;
  std::string_view source; ///< of the card's figures
};

/// The cards known, by name. Figures of the compute capability are from the
/// CUDA C++ Programming Guide, "Compute Capabilities: Technical
/// Specifications", and agree with cuda_occupancy.h of CUDA 13.0.
std::span<const DeviceProfile> deviceProfiles();

/// The first card of an architecture ("sm_90", "sm_90a"), or null.
const DeviceProfile *profileOfArchitecture(std::string_view arch);

} // namespace mgpu::device

#endif // MGPU_DEVICE_API_DEVICEPROFILE_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_API_LIBRARIES_H
#define MGPU_DEVICE_CUDA_API_LIBRARIES_H

#include "support/Result.h"

#include <string>

namespace mgpu::device {

/// A library of NVIDIA's as it is on this machine. Asked for by name at run
/// time; no header of it is needed.
struct FoundLibrary {
  std::string path, version; ///< "/usr/lib/.../libnccl.so.2", "2.28.9"
  int number = 0;            ///< NCCL's version as it counts: 22809
};

/// Absent, with what to install, where there is none.
Result<FoundLibrary> findNccl();
Result<FoundLibrary> findCublasLt();
Result<FoundLibrary> findCupti();

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_API_LIBRARIES_H

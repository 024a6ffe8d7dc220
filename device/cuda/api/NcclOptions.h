// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_API_NCCLOPTIONS_H
#define MGPU_DEVICE_CUDA_API_NCCLOPTIONS_H

// NCCL's settings that a user may choose. Built with and without CUDA's
// headers.

#include "support/Result.h"

#include <cstdint>
#include <string_view>

namespace mgpu::device {

/// How NCCL's communicators are made and used.
struct NcclOptions {
  enum class Ctas : uint8_t { Default, Efficiency, Zero };

  /// Collectives whose communicators share at most one rank may run at once;
  /// else all of a GPU follow each other.
  bool overlaps = false;
  /// Thread blocks of a collective, at least and at most; 0: as NCCL likes.
  uint32_t leastCtas = 0, mostCtas = 0;
  Ctas ctas = Ctas::Default; ///< NCCL's CTAPolicy
  /// The arenas are windows of NCCL's: memory of ncclMemAlloc, registered as
  /// symmetric. Calls whose ends are not at equal places in them go by way of
  /// other memory.
  bool windows = false;

  bool setsCtas() const {
    return leastCtas || mostCtas || ctas != Ctas::Default;
  }
};

/// Usage unless NCCL_GRAPH_MIXING_SUPPORT is 0 in this process. NCCL would else
/// tie every launch to those outside of graphs by event nodes, some of which
/// nothing waits for. NCCL 2.28 has no other switch for it.
Result<void> checkNcclMixing();

/// "overlap,windows,min-ctas=1,max-ctas=8,ctas=efficiency", any of them; Usage
/// for anything else.
Result<NcclOptions> parseNccl(std::string_view text);

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_API_NCCLOPTIONS_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_RANKS_RANKMEMORY_H
#define MGPU_CAPTURE_RANKS_RANKMEMORY_H

// Memory that the ranks of a program on one machine share: a SharedControl,
// room for what they exchange, and the host buffers.

#include "capture/ranks/SharedControl.h"
#include "device/api/Rendezvous.h"
#include "planner/dag/Dag.h"

#include <memory>

namespace mgpu::capture {

using device::Rendezvous;

class RankMemory {
public:
  /// Fresh memory with the program's constants, for so many ranks. Unsupported
  /// for more than a SharedControl has.
  static Result<RankMemory> make(const planner::Dag &dag, uint32_t numRanks);

  SharedControl &control() const {
    return *reinterpret_cast<SharedControl *>(memory.bytes().data());
  }
  /// For one rank. `deadline` is how long it waits for another (0: for ever).
  std::unique_ptr<Rendezvous>
  rendezvous(uint32_t rank, std::chrono::milliseconds deadline) const;
  /// By hostLayout().
  std::span<std::byte> host() const {
    return memory.bytes().subspan(hostOffset);
  }
  /// The buffer's bytes, as Replayer::hostBuffer() gives them.
  std::span<std::byte> hostBuffer(planner::BufferId id) const {
    return id.value < buffers.size() ? buffers[id.value]
                                     : std::span<std::byte>();
  }
  /// The memory is then never freed: a GPU that is lost may still write it.
  void keep() { memory.keep(); }

private:
  RankMemory() = default;

  SharedMemory memory;
  uint32_t numRanks = 0;
  uint64_t roomBytes = 0; ///< each rank's, for what it exchanges
  uint64_t hostOffset = 0;
  std::vector<std::span<std::byte>> buffers; ///< by BufferId
};

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_RANKS_RANKMEMORY_H

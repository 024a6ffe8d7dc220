// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_RANKS_RANKMEMORY_H
#define MGPU_CAPTURE_RANKS_RANKMEMORY_H

// Memory that the ranks of a program on one machine share: a SharedControl,
// room for what they exchange, and the host buffers.

#include "device/api/MessageRendezvous.h"
#include "planner/dag/Dag.h"
#include "support/Result.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace mgpu::capture {

// The control block that ranks of one machine share beside host buffers, be
// they processes or threads of one.

/// Zeroed memory that this process shares with those it forks from then on.
class SharedMemory {
public:
  /// Absent where the system has no room for it.
  static Result<SharedMemory> make(uint64_t bytes);
  SharedMemory() = default;
  SharedMemory(SharedMemory &&other) noexcept;
  SharedMemory &operator=(SharedMemory &&other) noexcept;
  ~SharedMemory();
  std::span<std::byte> bytes() const { return all; }
  void keep() { isKept = true; } ///< it is never freed

private:
  std::span<std::byte> all;
  bool isKept = false;
};

/// At the head of the shared memory. All zero is a fresh one.
class SharedControl {
public:
  static constexpr size_t maxRanks = 64;

  /// Makes every wait of the ranks end with an error.
  void abort() { aborted = 1; }
  /// An error once abort() was called. Also a sign of life.
  Result<void> watch(uint32_t rank);
  /// Returns once all ranks called it as often; errors as watch(), or when the
  /// others did not come within `deadline` (0: none).
  Result<void> meet(uint32_t rank, uint32_t ranks,
                    std::chrono::milliseconds deadline);
  /// meet(), and the largest of what the ranks say.
  Result<double> largest(uint32_t rank, uint32_t ranks, double mine,
                         std::chrono::milliseconds deadline);
  /// Changes as long as any rank gives a sign of life.
  uint64_t signs() const;

private:
  struct alignas(64) Rank {
    std::atomic<uint64_t> beats, arrived;
    /// By turns: who is a round ahead does not write what others still read.
    std::atomic<double> said[2];
  };
  std::atomic<uint32_t> aborted;
  Rank ranks[maxRanks];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free &&
              std::atomic<double>::is_always_lock_free);

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

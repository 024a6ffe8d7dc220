// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/ranks/SharedControl.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace mgpu::capture {

Result<SharedMemory> SharedMemory::make(uint64_t bytes) {
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return fail(ErrorKind::Absent,
                fmt::format("cannot share {} bytes of host buffers among "
                            "processes: {}; use smaller buffers",
                            bytes, std::strerror(errno)));
  SharedMemory out;
  out.all = {static_cast<std::byte *>(memory), size_t(bytes)};
  return out;
}

SharedMemory::SharedMemory(SharedMemory &&other) noexcept
    : all(std::exchange(other.all, {})), isKept(other.isKept) {}

SharedMemory &SharedMemory::operator=(SharedMemory &&other) noexcept {
  std::swap(all, other.all);
  std::swap(isKept, other.isKept);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (!all.empty() && !isKept)
    munmap(all.data(), all.size());
}

Result<void> SharedControl::watch(uint32_t rank) {
  ranks[rank].beats.fetch_add(1, std::memory_order_relaxed);
  if (aborted.load(std::memory_order_acquire))
    return fail(Error{.kind = ErrorKind::Absent,
                      .message = "given up, because another GPU failed",
                      .cause = ErrorCause::OtherRank});
  return {};
}

Result<void> SharedControl::meet(uint32_t rank, uint32_t count,
                                 std::chrono::milliseconds deadline) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const uint64_t round = ranks[rank].arrived.fetch_add(1) + 1;
  for (uint64_t turn = 0;; ++turn) {
    MGPU_TRY(watch(rank));
    uint32_t missing = 0; // the first that is
    while (missing < count &&
           ranks[missing].arrived.load(std::memory_order_acquire) >= round)
      ++missing;
    if (missing == count)
      return {};
    if (deadline.count() > 0 && Clock::now() - start > deadline)
      return fail(ErrorKind::Invalid,
                  fmt::format("waited {} ms for rank {} to come to the "
                              "same step",
                              deadline.count(), missing));
    // GPUs are at work meanwhile or nothing is: a core is worth little at
    // first and more later.
    if (turn > 2000)
      usleep(50);
    else if (turn > 50)
      sched_yield();
  }
}

Result<double> SharedControl::largest(uint32_t rank, uint32_t count,
                                      double mine,
                                      std::chrono::milliseconds deadline) {
  const size_t turn = ranks[rank].arrived.load(std::memory_order_relaxed) % 2;
  ranks[rank].said[turn].store(mine, std::memory_order_relaxed);
  MGPU_TRY(meet(rank, count, deadline));
  for (uint32_t other = 0; other < count; ++other)
    mine =
        std::max(mine, ranks[other].said[turn].load(std::memory_order_relaxed));
  return mine;
}

uint64_t SharedControl::signs() const {
  uint64_t sum = 0;
  for (const Rank &rank : ranks)
    sum += rank.beats.load(std::memory_order_relaxed);
  return sum;
}

} // namespace mgpu::capture

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/ranks/RankMemory.h"

#include "capture/graph/Communication.h"
#include "capture/replay/Replayer.h"

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

namespace {

/// Ranks of one machine. Each has a room of equal size in `rooms`: the length
/// of what it gave, then the bytes.
class SharedRendezvous final : public Rendezvous {
public:
  SharedRendezvous(SharedControl &control, std::span<std::byte> rooms,
                   uint32_t rank, uint32_t count,
                   std::chrono::milliseconds deadline)
      : control(control), rooms(rooms), own(rank), ranks(count),
        deadline(deadline) {}

  uint32_t rank() const override { return own; }
  uint32_t count() const override { return ranks; }
  Result<void> watch() override { return control.watch(own); }
  Result<void> meet() override { return control.meet(own, ranks, deadline); }
  Result<double> largest(double mine) override {
    return control.largest(own, ranks, mine, deadline);
  }
  Result<std::vector<Bytes>>
  exchange(std::span<const std::byte> mine) override {
    const std::span<std::byte> room = roomOf(own);
    const uint64_t size = mine.size();
    if (room.size() < sizeof size + size)
      return fail(ErrorKind::Internal,
                  fmt::format("rank {} has {} bytes for the others, more than "
                              "there is room for",
                              own, size));
    std::memcpy(room.data(), &size, sizeof size);
    std::copy(mine.begin(), mine.end(), room.begin() + sizeof size);
    MGPU_TRY(meet());
    std::vector<Bytes> all;
    for (uint32_t other = 0; other < ranks; ++other) {
      ByteReader reader(roomOf(other));
      const auto given = reader.rest().subspan(sizeof size);
      const auto first = given.first(reader.take<uint64_t>());
      all.emplace_back(first.begin(), first.end());
    }
    MGPU_TRY(meet()); // from here on the rooms may be written again
    return all;
  }
  void abort(const std::string &) override { control.abort(); }

private:
  std::span<std::byte> roomOf(uint32_t of) const {
    const size_t bytes = rooms.size() / ranks;
    return rooms.subspan(of * bytes, bytes);
  }

  SharedControl &control;
  const std::span<std::byte> rooms;
  const uint32_t own, ranks;
  const std::chrono::milliseconds deadline;
};

uint64_t wholePages(uint64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

} // namespace

Result<RankMemory> RankMemory::make(const planner::Dag &dag,
                                    uint32_t numRanks) {
  if (numRanks > SharedControl::maxRanks)
    return fail(ErrorKind::Unsupported,
                fmt::format("{} GPUs, more than {}", numRanks,
                            SharedControl::maxRanks));
  const HostLayout layout = hostLayout(dag);
  RankMemory out;
  out.numRanks = numRanks;
  // One rank may be the first of every group.
  out.roomBytes = sizeof(uint64_t) +
                  communicatingGroups(dag).size() * sizeof(device::GroupId);
  out.hostOffset =
      wholePages(sizeof(SharedControl) + out.numRanks * out.roomBytes);
  MGPU_TRY_ASSIGN(out.memory,
                  SharedMemory::make(out.hostOffset + layout.bytes));
  MGPU_TRY(writeConstants(dag, layout, out.host()));
  for (size_t k = 0; k < dag.buffers.size(); ++k)
    out.buffers.push_back(
        dag.buffers[k].device.isHost()
            ? out.host().subspan(layout.offsets[k],
                                 size_t(dag.buffers[k].sizeBytes))
            : std::span<std::byte>());
  return out;
}

std::unique_ptr<Rendezvous>
RankMemory::rendezvous(uint32_t rank,
                       std::chrono::milliseconds deadline) const {
  return std::make_unique<SharedRendezvous>(
      control(),
      memory.bytes().subspan(sizeof(SharedControl), numRanks * roomBytes), rank,
      numRanks, deadline);
}

} // namespace mgpu::capture

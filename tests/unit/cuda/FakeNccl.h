// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_CUDA_FAKENCCL_H
#define MGPU_TESTS_UNIT_CUDA_FAKENCCL_H

// An NCCL that is not there, over FakeCuda: ranks are processes that were
// forked after FakeWorld::create(), or threads with a GPU each, and their data
// really goes from one to the other, through memory they share. It keeps NCCL's
// rules, each with the line of nccl.h (2.28.9) it is from or the words libnccl
// has for it, knows nothing of plans, and counts its calls with those of
// FakeCuda, so that each of them can be made to fail.

#include "FakeCuda.h"

#include "device/cuda/nccl/NcclApi.h"

#include <array>
#include <atomic>

namespace mgpu::fake {

/// What one rank sends another at a time, and what it belongs to.
struct Mail {
  std::atomic<uint64_t> posted, taken; ///< letters so far
  uint64_t bytes;
  char signature[120];
  static constexpr size_t capacity = size_t(16) << 20;
  std::byte data[capacity];
};

/// One communicator as its ranks share it.
struct Meeting {
  static constexpr size_t maxRanks = 4;
  std::atomic<uint32_t> arrived; ///< a bit for each rank
  std::atomic<uint32_t> aborted, finalized;
  std::atomic<uint32_t> left;      ///< a bit for each that was destroyed
  std::atomic<uint32_t> isOver;    ///< all were: another one may have it
  std::atomic<int> gpus[maxRanks]; ///< of ranks, unique among all processes
  static constexpr size_t maxWindows = 4;
  /// Which ranks have registered each window, and how large it is.
  std::atomic<uint32_t> registered[maxWindows];
  std::atomic<uint64_t> windowBytes[maxWindows];
  Mail mail[maxRanks][maxRanks]; ///< from, to
};

/// The memory that ranks share.
class FakeWorld {
public:
  static constexpr size_t maxMeetings = 64; ///< at a time
  /// A fresh one, for this process and those it forks from now on.
  static void create();
  /// The one in a file, for processes that were not forked from one that has
  /// it; an empty file is a fresh one.
  static void share(const char *path);
  static FakeWorld &instance();

  /// The number of one that nobody has; maxMeetings: there is none.
  uint32_t takeMeeting();

  std::atomic<uint32_t> numMeetings; ///< so far, without those taken again
  Meeting meetings[maxMeetings];
};

struct FakeComm {
  Meeting *meeting;
  int rank, ranks;
  Context *context;
  bool isReady = false, isFinalizing = false;
  int polls = 0; ///< answers of "in progress" left
  device::NcclResult error = device::NcclResult::Success;
  std::set<std::string> connected; ///< what was done outside of a capture
  uint64_t captures = 0;           ///< calls captured so far
  size_t numWindows = 0;           ///< that it has registered so far
  device::NcclWindow *unfilled = nullptr; ///< set once the call is complete
  struct FakeWindow *filling = nullptr;   ///< to this
};

/// A window, whose handle is its address.
struct FakeWindow {
  FakeComm *comm;
  size_t number; ///< the communicator's number, the same on every rank
  uint64_t address, bytes;
};

class FakeNccl {
public:
  /// The one instance, fresh, with FakeCuda::reset()'s life.
  static FakeNccl &reset();
  static FakeNccl &instance();
  static std::shared_ptr<const device::NcclApi> api();

  device::NcclResult failCode = device::NcclResult::UnhandledCudaError;
  int polls = 2; ///< how often a call is found to be in progress
  /// What the communicators find out by themselves.
  device::NcclResult asyncError = device::NcclResult::Success;

  /// How long a call takes among so many ranks, in milliseconds; null: an
  /// eighth of one.
  std::function<double(const struct Work &, int ranks)> workMs;

  device::NcclConfig lastConfig; ///< of the last communicator
  Objects<FakeComm> comms;
  Objects<FakeWindow> windows;
  /// The n-th collective over windows of FakeCuda's wrongGpu, from 1 on, sends
  /// what lies an element further on.
  int movesWindow = 0, windowWorks = 0;
  std::map<uint64_t, size_t> memory; ///< what ncclMemAlloc gave
  int version = 22809;
  bool hasNoWindows = false; ///< registering gives none
  int aborts = 0;
};

} // namespace mgpu::fake

#endif // MGPU_TESTS_UNIT_CUDA_FAKENCCL_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_SERVE_CALLLOCK_H
#define MGPU_PIPELINE_SERVE_CALLLOCK_H

#include <atomic>
#include <cstdint>

namespace mgpu::pipeline::serve {

/// Lets one call at a time pass, in the order in which they came: a busy caller
/// does not keep another one out for long. Where nobody waits it makes no
/// system call, and costs two atomic additions.
class CallLock {
public:
  void lock() {
    const uint32_t mine = tickets.fetch_add(1, std::memory_order_relaxed);
    for (uint32_t now; (now = turn.load(std::memory_order_acquire)) != mine;)
      turn.wait(now, std::memory_order_acquire);
  }
  bool try_lock() {
    uint32_t mine = turn.load(std::memory_order_acquire);
    return tickets.compare_exchange_strong(mine, mine + 1,
                                           std::memory_order_acquire);
  }
  void unlock() {
    turn.fetch_add(1, std::memory_order_release);
    turn.notify_all();
  }

private:
  std::atomic<uint32_t> tickets{0}, turn{0};
};

} // namespace mgpu::pipeline::serve

#endif // MGPU_PIPELINE_SERVE_CALLLOCK_H

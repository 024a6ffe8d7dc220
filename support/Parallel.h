// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_PARALLEL_H
#define MGPU_SUPPORT_PARALLEL_H

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace mgpu {

/// Calls `body(k)` once for each k below `count`, on at most `threads` threads
/// (0: one for each processor core), the caller's among them. Each takes the
/// next k when it is free, so the order is not fixed; calls must not depend on
/// each other. Returns when all are done.
template <typename Body>
void parallelFor(size_t count, size_t threads, Body &&body) {
  if (threads == 0)
    threads = std::max(1u, std::thread::hardware_concurrency());
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t k; (k = next++) < count;)
      body(k);
  };
  std::vector<std::thread> others;
  for (size_t t = 1; t < std::min(threads, count); ++t)
    others.emplace_back(work);
  work();
  for (std::thread &thread : others)
    thread.join();
}

} // namespace mgpu

#endif // MGPU_SUPPORT_PARALLEL_H

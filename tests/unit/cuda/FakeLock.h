// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_CUDA_FAKELOCK_H
#define MGPU_TESTS_UNIT_CUDA_FAKELOCK_H

// CUDA's calls may come from several threads: all calls of the doubles, one at
// a time.

#include <mutex>

namespace mgpu::fake {

/// The mutex of all doubles. Recursive, as what runs in a call may call.
std::recursive_mutex &fakeMutex();

template <typename Tag, typename Returned, typename... Arguments>
struct LockedCall {
  static inline Returned (*plain)(Arguments...) = nullptr;
  static Returned call(Arguments... arguments) {
    std::lock_guard<std::recursive_mutex> lock(fakeMutex());
    return plain(arguments...);
  }
};

/// Puts a call that locks in the place of `entry`. `Tag` is this entry's.
template <typename Tag, typename Returned, typename... Arguments>
void lockEntry(Returned (*&entry)(Arguments...)) {
  std::lock_guard<std::recursive_mutex> lock(fakeMutex());
  using Locked = LockedCall<Tag, Returned, Arguments...>;
  if (!entry)
    return;
  Locked::plain = entry;
  entry = Locked::call;
}

} // namespace mgpu::fake

/// X of the lists of entry points, in a function that has the table `api`.
#define MGPU_FAKE_LOCK_ENTRY(name, ...)                                        \
  {                                                                            \
    struct Tag;                                                                \
    lockEntry<Tag>(api->name);                                                 \
  }

#endif // MGPU_TESTS_UNIT_CUDA_FAKELOCK_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_SESSION_WORKER_H
#define MGPU_TUNER_SESSION_WORKER_H

// A process of its own for code that is not trusted to return: compiled
// candidates, and the compiler on odd options. It has what its parent had when
// it was started, answers one request at a time, and its death is an answer.

#include "support/Result.h"
#include "tuner/session/Fault.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <sys/types.h>
#include <vector>

namespace mgpu::tuner {

using Bytes = std::vector<std::byte>;

// AddressSanitizer and ThreadSanitizer map terabytes of shadow memory, which no
// limit of data leaves room for.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool memoryLimitWorks = false;
#elif defined(__has_feature)
inline constexpr bool memoryLimitWorks =
    !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer);
#else
inline constexpr bool memoryLimitWorks = true;
#endif

struct WorkerLimits {
  /// Of memory the worker may write beyond what it inherits; 0: as much as
  /// there is. Without effect where !memoryLimitWorks.
  uint64_t memoryBytes = 0;
};

enum class WorkerTransfer : uint8_t { Done, Closed, Late };

class Worker {
public:
  /// Answers a request, in the child.
  using Handler = std::function<Outcome<Bytes>(std::span<const std::byte>)>;

  /// Forks. Threads of this process do not exist in the child: start workers
  /// while there are none, or none that hold a lock the handler takes. The
  /// child has a process group of its own, ends with its parent, and writes
  /// its standard output and error to nowhere. Absent where the system refuses
  /// a process.
  static Result<Worker> start(Handler handler, WorkerLimits limits = {});

  Worker(Worker &&other) noexcept;
  Worker &operator=(Worker &&other) noexcept;
  ~Worker(); ///< kills the child

  /// Sends a request and waits for the answer. After a Crash or Hang the child
  /// is dead and every further request says so.
  Outcome<Bytes> ask(std::span<const std::byte> request, double seconds) {
    if (auto sent = post(request, seconds); !sent)
      return tl::make_unexpected(sent.error());
    return receive(seconds);
  }
  /// The two halves of ask(), so that several workers are busy at once.
  Outcome<void> post(std::span<const std::byte> request, double seconds);
  Outcome<Bytes> receive(double seconds);

  /// Which of these has an answer, or has died: the first that is found within
  /// so many seconds. Null entries are passed over.
  static std::optional<size_t> firstReady(std::span<Worker *const> workers,
                                          double seconds);

  pid_t process() const { return child; }

private:
  Worker(pid_t child, int socket) : child(child), socket(socket) {}
  void end();
  Fault lose(WorkerTransfer how, double seconds);

  pid_t child = -1;
  int socket = -1;
  Fault death; ///< why, when `child` is -1
};

} // namespace mgpu::tuner

#endif // MGPU_TUNER_SESSION_WORKER_H

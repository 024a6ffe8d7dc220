// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_CHILDPROCESS_H
#define MGPU_SUPPORT_CHILDPROCESS_H

// A forked process for code that is not trusted to return (compiled candidates,
// the compiler on odd options) or that needs a process of its own (a rank of
// CUDA). It has what its parent had when it was started and answers one request
// at a time. Its death is an answer, too.

#include "support/Bytes.h"
#include "support/Fault.h"
#include "support/Result.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <sys/types.h>
#include <vector>

namespace mgpu {

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

struct ChildLimits {
  /// Memory that the child may write beyond what it inherits; 0 means no limit.
  /// It has no effect unless memoryLimitWorks.
  uint64_t memoryBytes = 0;
};

class ChildProcess {
public:
  /// Answers a request, in the child.
  using Handler = std::function<Outcome<Bytes>(std::span<const std::byte>)>;

  /// Forks. Threads of this process do not exist in the child: start it
  /// while there are none, or none that hold a lock the handler takes. The
  /// child has a process group of its own, ends with its parent, and writes
  /// its standard output and error to nowhere. Absent where the system refuses
  /// a process.
  static Result<ChildProcess> start(Handler handler, ChildLimits limits = {});

  ChildProcess(ChildProcess &&other) noexcept;
  ChildProcess &operator=(ChildProcess &&other) noexcept;
  ~ChildProcess(); ///< kills the child

  /// Sends a request and waits for the answer. After a Crash or Hang the child
  /// is dead and every further request says so.
  Outcome<Bytes> ask(std::span<const std::byte> request, double seconds) {
    if (auto sent = post(request, seconds); !sent)
      return tl::make_unexpected(sent.error());
    return receive(seconds);
  }
  /// The two halves of ask(), so that several children are busy at once.
  Outcome<void> post(std::span<const std::byte> request, double seconds);
  Outcome<Bytes> receive(double seconds);

  /// The first of these that has an answer or has died, if there is one within
  /// so many seconds. Null entries are passed over.
  static std::optional<size_t>
  firstReady(std::span<ChildProcess *const> children, double seconds);

  pid_t process() const { return child; }

private:
  ChildProcess(pid_t child, int socket) : child(child), socket(socket) {}
  void end();
  Fault lose(bool isLate, double seconds);

  pid_t child = -1;
  int socket = -1;
  Fault death; ///< why, when `child` is -1
};

} // namespace mgpu

#endif // MGPU_SUPPORT_CHILDPROCESS_H

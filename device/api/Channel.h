// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_API_CHANNEL_H
#define MGPU_DEVICE_API_CHANNEL_H

// A channel carries bytes between the processes of one program: sockets
// (device/tcp) or MPI (device/mpi). MessageRendezvous is its only caller, from
// one thread at a time. No call blocks but wait() and close().

#include "support/Result.h"

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace mgpu::device {

struct Outgoing {
  uint32_t to = 0; ///< a rank, never one's own
  std::span<const std::byte> bytes;
};
struct Incoming {
  uint32_t from = 0; ///< a rank, never one's own
  std::span<std::byte> bytes;
};

/// A notice that one rank gives another beside the data.
struct Notice {
  enum class Kind : uint8_t {
    Abort = 1, ///< it failed; `text` says why
    Leave = 2, ///< it has nothing more to say, and ends
    Ended = 3, ///< never told: it is gone without a word
  };
  Kind kind = Kind::Abort;
  uint32_t from = 0;
  std::string text{};
};

class Channel {
public:
  virtual ~Channel() = default;
  virtual uint32_t rank() const = 0;
  virtual uint32_t count() const = 0;
  /// The library that carries the bytes, with its version; all ranks must have
  /// the same.
  virtual std::string library() const = 0;

  /// Begins to send and receive; what was started before is done. The bytes
  /// stay where they are until advance() gives true, or abandon(). Between two
  /// ranks messages arrive in the order they were sent, and the lengths must
  /// agree.
  virtual void start(std::span<const Outgoing> sends,
                     std::span<const Incoming> recvs) = 0;
  /// Goes on; true once all that was started is done. Absent where a message
  /// has another length than what it is received into.
  virtual Result<bool> advance() = 0;
  /// Gives up what was started: nothing is received into its bytes from here
  /// on. Sends go on where that is possible; MPI may read their bytes.
  virtual void abandon() = 0;
  /// The first rank that something is still to come from or go to.
  virtual std::optional<uint32_t> awaited() const = 0;

  /// Best effort; the text may be cut.
  virtual void tell(uint32_t rank, const Notice &notice) = 0;
  /// The next notice, in the order of their arrival where that is known.
  virtual std::optional<Notice> heard() = 0;

  /// Sleeps until there may be something to do, no longer than `most`.
  virtual void wait(std::chrono::microseconds most) = 0;
  /// Once, at the end. `isOrderly`: all ranks are there and do the same.
  virtual void close(bool isOrderly) = 0;
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_API_CHANNEL_H

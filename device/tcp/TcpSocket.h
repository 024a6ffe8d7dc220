// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_TCP_TCPSOCKET_H
#define MGPU_DEVICE_TCP_TCPSOCKET_H

#include "support/Result.h"

#include <chrono>
#include <cstddef>
#include <span>

namespace mgpu::device {

/// A descriptor of a socket, which closes with it.
class TcpSocket {
public:
  TcpSocket() = default;
  explicit TcpSocket(int descriptor) : descriptor(descriptor) {}
  TcpSocket(TcpSocket &&other) noexcept
      : descriptor(std::exchange(other.descriptor, -1)) {}
  TcpSocket &operator=(TcpSocket &&other) noexcept {
    std::swap(descriptor, other.descriptor);
    return *this;
  }
  ~TcpSocket() { close(); }
  int get() const { return descriptor; }
  bool isOpen() const { return descriptor >= 0; }
  void close();

  using Deadline = std::chrono::steady_clock::time_point;
  /// Waits for all of `bytes`. Absent where the other end is gone or late.
  Result<void> sendAll(std::span<const std::byte> bytes, Deadline until);
  Result<void> receiveAll(std::span<std::byte> bytes, Deadline until);

private:
  int descriptor = -1;
};

/// Waits for connections on `port` of all addresses; 0 is any port.
Result<TcpSocket> listenOn(uint16_t port);
/// The port of a socket of listenOn().
uint16_t portOf(const TcpSocket &listening);
/// The next connection, and the address it comes from.
Result<std::pair<TcpSocket, std::string>> acceptOne(const TcpSocket &listening,
                                                    TcpSocket::Deadline until);
/// Tries again and again, as the other end may not listen yet.
Result<TcpSocket> connectTo(const std::string &address, uint16_t port,
                            TcpSocket::Deadline until);

} // namespace mgpu::device

#endif // MGPU_DEVICE_TCP_TCPSOCKET_H

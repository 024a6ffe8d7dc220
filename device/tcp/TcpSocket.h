// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_TCP_TCPSOCKET_H
#define MGPU_DEVICE_TCP_TCPSOCKET_H

#include "support/Result.h"

#include <chrono>
#include <cstddef>
#include <span>
#include <sys/socket.h>

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
  /// Whether the other end has hung up, and left nothing to be read.
  bool hasEnded() const;

private:
  int descriptor = -1;
};

/// An address of a machine and a port, of either family.
struct TcpAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;

  /// Whether it reaches no further than this machine.
  bool isLoopback() const;
  /// The number, without the port.
  std::string host() const;
  uint16_t port() const;
  TcpAddress withPort(uint16_t port) const;
};

/// 127.0.0.1.
TcpAddress loopbackAt(uint16_t port);
/// All addresses of a name or number, in the order in which to try them.
Result<std::vector<TcpAddress>> lookUp(const std::string &name, uint16_t port);
/// This end of a connection, or what a socket listens at.
TcpAddress localOf(const TcpSocket &socket);

/// Waits for connections at exactly this address; port 0 is any port.
Result<TcpSocket> listenOn(const TcpAddress &at);
/// Tries once, for 5 s at most.
Result<TcpSocket> connectTo(const TcpAddress &to);
/// The next connection that waits, and where it comes from; a socket that is
/// not open where none does. Absent where the system has no room for one.
Result<std::pair<TcpSocket, TcpAddress>> acceptOne(const TcpSocket &listening);

} // namespace mgpu::device

#endif // MGPU_DEVICE_TCP_TCPSOCKET_H

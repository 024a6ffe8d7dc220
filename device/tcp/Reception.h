// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_TCP_RECEPTION_H
#define MGPU_DEVICE_TCP_RECEPTION_H

// Where a rank waits for the others. Anyone may connect: all connections are
// served at once, so that one that says nothing delays nobody, and only a
// number of them is kept, so that many do not use up what the process may open.

#include "device/tcp/Handshake.h"

#include <deque>

namespace mgpu::device {

/// A rank that has proven that it has the secret.
struct Guest {
  TcpSocket socket;
  Hello hello;
  std::string address; ///< where it came from
};

class Reception {
public:
  Reception(TcpSocket listening, Membership here)
      : listening(std::move(listening)), here(std::move(here)) {}
  Reception(const Reception &) = delete; // visitors know where it is

  /// The next rank that comes. Absent where none does before `until`.
  Result<Guest> next(TcpSocket::Deadline until);
  TcpAddress address() const { return localOf(listening); }
  /// How many have come that proved nothing.
  uint64_t numStrangers() const { return strangers; }

private:
  struct Visitor {
    TcpSocket socket;
    std::string address;
    Admission admission;
  };
  void await(TcpSocket::Deadline until);
  void takeAll();
  /// Whether the visitor is a guest; closes its socket where it is a stranger.
  bool serve(Visitor &visitor);
  void dismissFirst();

  TcpSocket listening;
  const Membership here;
  std::deque<Visitor> visitors; ///< the first came first
  uint64_t strangers = 0;
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_TCP_RECEPTION_H

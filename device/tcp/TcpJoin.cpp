// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/tcp/TcpChannel.h"

#include "support/Bytes.h"

#include <fmt/format.h>

namespace mgpu::device {

namespace {

using Until = TcpSocket::Deadline;

constexpr uint64_t magic = 0x31767275706d676d;

/// What a rank says first on each connection.
struct Hello {
  uint64_t mark = magic;
  uint32_t rank = 0, count = 0;
  uint32_t port = 0; ///< where it listens
  uint32_t rest = 0;
};

/// How much longer than the deadline a rank waits for words about others, who
/// wait until the deadline themselves.
constexpr std::chrono::seconds grace{2};

Result<void> sendText(TcpSocket &to, std::span<const std::byte> bytes,
                      Until until) {
  const uint64_t size = bytes.size();
  MGPU_TRY(to.sendAll(std::as_bytes(std::span(&size, 1)), until));
  return to.sendAll(bytes, until);
}

Result<Bytes> receiveText(TcpSocket &from, Until until) {
  uint64_t size = 0;
  MGPU_TRY(from.receiveAll(std::as_writable_bytes(std::span(&size, 1)), until));
  if (size > 1 << 24)
    return fail(ErrorKind::Invalid, "what listens there is no rank of mgpu");
  Bytes out(size);
  MGPU_TRY(from.receiveAll(out, until));
  return out;
}

struct Guest {
  TcpSocket socket;
  Hello hello;
  std::string address;
};

/// The next that says it is a rank; others are sent away.
Result<Guest> nextGuest(const TcpSocket &listening, Until until) {
  while (true) {
    MGPU_TRY_ASSIGN(auto connection, acceptOne(listening, until));
    Guest out{std::move(connection.first), {}, std::move(connection.second)};
    const auto soon =
        std::chrono::steady_clock::now() + std::chrono::seconds(5);
    if (out.socket.receiveAll(std::as_writable_bytes(std::span(&out.hello, 1)),
                              std::min(soon, until)) &&
        out.hello.mark == magic)
      return out;
  }
}

/// What is wrong with a guest of rank 0; "" is nothing.
std::string faultOf(const Hello &hello, const TcpPlace &place,
                    const std::vector<Guest> &guests) {
  if (hello.count != place.count)
    return fmt::format(
        "rank 0 is one of {} ranks, and rank {} one of {}: start "
        "all with the same number",
        place.count, hello.rank, hello.count);
  if (hello.rank == 0 || hello.rank >= place.count)
    return fmt::format("a rank says it is rank {} of {}", hello.rank,
                       place.count);
  if (guests[hello.rank].socket.isOpen())
    return fmt::format("two ranks say they are rank {}", hello.rank);
  return "";
}

/// Rank 0: whether all have met all. Those that have not blame others, so it is
/// one that says nothing that counts, if there is one. All are told.
std::string verdict(std::vector<TcpSocket> &sockets, Until until) {
  std::string fault, silent;
  for (uint32_t k = 1; k < sockets.size(); ++k) {
    auto text = receiveText(sockets[k], until);
    if (!text && silent.empty())
      silent = fmt::format("rank {} was lost while the ranks met", k);
    else if (text && fault.empty())
      fault.assign(reinterpret_cast<const char *>(text->data()), text->size());
  }
  if (!silent.empty())
    fault = silent;
  for (uint32_t k = 1; k < sockets.size(); ++k)
    (void)sendText(sockets[k], std::as_bytes(std::span(fault)), until + grace);
  return fault;
}

/// Rank 0: an error text, empty, then where each rank listens.
Result<std::vector<TcpSocket>> host(const TcpPlace &place, Until until) {
  MGPU_TRY_ASSIGN(const TcpSocket listening, listenOn(place.port));
  std::vector<Guest> guests(place.count);
  std::string fault;
  for (uint32_t left = place.count - 1; left > 0 && fault.empty(); --left) {
    auto guest = nextGuest(listening, until);
    if (!guest) {
      uint32_t missing = 1;
      while (guests[missing].socket.isOpen())
        ++missing;
      fault = fmt::format("rank {} did not come to {} port {} in time", missing,
                          place.address, place.port);
      break;
    }
    fault = faultOf(guest->hello, place, guests);
    // One that is wrong has to be told, too.
    uint32_t at = guest->hello.rank;
    if (!fault.empty())
      at = 0;
    guests[at] = std::move(*guest);
  }
  Bytes table;
  append(table, fault);
  for (const Guest &guest : guests) {
    append(table, guest.address);
    append(table, uint16_t(guest.hello.port));
  }
  std::vector<TcpSocket> sockets(place.count);
  for (uint32_t k = 0; k < place.count; ++k)
    if (guests[k].socket.isOpen()) {
      // One that is gone by now says nothing later, which is what counts.
      (void)sendText(guests[k].socket, table, until);
      sockets[k] = std::move(guests[k].socket);
    }
  if (fault.empty())
    fault = verdict(sockets, until + grace);
  if (!fault.empty())
    return fail(ErrorKind::Absent, fault);
  return sockets;
}

Result<TcpSocket> greet(uint32_t other, const std::string &address,
                        uint16_t port, const Hello &hello, Until until) {
  auto made = connectTo(address, port, until);
  if (!made)
    return failIn(fmt::format("rank {} is not met: ", other), made.error());
  MGPU_TRY(made->sendAll(std::as_bytes(std::span(&hello, 1)), until));
  return made;
}

/// Connects to the ranks below, and waits for those above. `table` is that of
/// host().
Result<void> meetAll(const Hello &hello, const TcpSocket &listening,
                     ByteReader table, std::vector<TcpSocket> &sockets,
                     Until until) {
  for (uint32_t other = 0; other < hello.rank; ++other) {
    const std::string address = table.text();
    const auto port = table.take<uint16_t>();
    if (other > 0) {
      MGPU_TRY_ASSIGN(sockets[other],
                      greet(other, address, port, hello, until));
    }
  }
  for (uint32_t left = hello.count - 1 - hello.rank; left > 0; --left) {
    auto guest = nextGuest(listening, until);
    uint32_t missing = hello.rank + 1;
    while (sockets[missing].isOpen())
      ++missing;
    if (!guest)
      return fail(ErrorKind::Absent,
                  fmt::format("rank {} did not come to rank {} in time",
                              missing, hello.rank));
    if (guest->hello.rank <= hello.rank || guest->hello.rank >= hello.count)
      return fail(ErrorKind::Invalid,
                  fmt::format("rank {} came to rank {}", guest->hello.rank,
                              hello.rank));
    sockets[guest->hello.rank] = std::move(guest->socket);
  }
  return {};
}

/// Every rank but the first.
Result<std::vector<TcpSocket>> visit(const TcpPlace &place, Until until) {
  MGPU_TRY_ASSIGN(const TcpSocket listening, listenOn(0));
  Hello hello;
  hello.rank = place.rank;
  hello.count = place.count;
  hello.port = portOf(listening);
  std::vector<TcpSocket> sockets(place.count);
  MGPU_TRY_ASSIGN(sockets[0],
                  greet(0, place.address, place.port, hello, until));
  auto hear = [&](Until most) {
    auto text = receiveText(sockets[0], most);
    return text ? std::move(text)
                : Result<Bytes>(
                      failIn("rank 0 does not answer: ", text.error()));
  };
  MGPU_TRY_ASSIGN(const Bytes table, hear(until + grace));
  ByteReader reader(table);
  if (std::string fault = reader.text(); !fault.empty())
    return fail(ErrorKind::Absent, fault);
  const Result<void> met = meetAll(hello, listening, reader, sockets, until);
  const std::string mine = met ? "" : met.error().message;
  MGPU_TRY(sendText(sockets[0], std::as_bytes(std::span(mine)), until + grace));
  MGPU_TRY_ASSIGN(const Bytes fault, hear(until + 3 * grace));
  if (!fault.empty())
    return fail(ErrorKind::Absent,
                std::string(reinterpret_cast<const char *>(fault.data()),
                            fault.size()));
  return sockets;
}

} // namespace

Result<std::unique_ptr<Channel>> joinByTcp(const TcpPlace &place,
                                           std::chrono::milliseconds deadline) {
  if (deadline.count() == 0)
    deadline = std::chrono::hours(1);
  const Until until = std::chrono::steady_clock::now() + deadline;
  if (place.count == 1)
    return makeTcpChannel(0, std::vector<TcpSocket>(1));
  auto sockets = place.rank == 0 ? host(place, until) : visit(place, until);
  if (!sockets)
    return fail(std::move(sockets.error()));
  return makeTcpChannel(place.rank, std::move(*sockets));
}

} // namespace mgpu::device

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/tcp/TcpSocket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

namespace mgpu::device {

namespace {

tl::unexpected<Error> systemError(const std::string &what, int code) {
  return fail(ErrorKind::Absent,
              fmt::format("{}: {}", what, std::strerror(code)));
}

/// Whether the socket is ready before `until`.
bool isReady(int descriptor, short events, TcpSocket::Deadline until) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    pollfd one{descriptor, events, 0};
    const int ready =
        ::poll(&one, 1, int(std::clamp<int64_t>(left.count() + 1, 0, 60'000)));
    if (ready > 0)
      return true;
    if ((ready == 0 || errno != EINTR) && left.count() <= 0)
      return false;
  }
}

void makeQuick(int descriptor) {
  const int on = 1;
  (void)setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  (void)setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

const sockaddr_in &asFour(const TcpAddress &address) {
  return reinterpret_cast<const sockaddr_in &>(address.bytes);
}

const sockaddr_in6 &asSix(const TcpAddress &address) {
  return reinterpret_cast<const sockaddr_in6 &>(address.bytes);
}

} // namespace

void TcpSocket::close() {
  if (descriptor >= 0)
    ::close(std::exchange(descriptor, -1));
}

Result<void> TcpSocket::sendAll(std::span<const std::byte> bytes,
                                Deadline until) {
  while (!bytes.empty()) {
    const ssize_t done = ::send(descriptor, bytes.data(), bytes.size(),
                                MSG_NOSIGNAL | MSG_DONTWAIT);
    if (done > 0) {
      bytes = bytes.subspan(size_t(done));
    } else if (errno != EAGAIN && errno != EINTR) {
      return systemError("a rank cannot be told anything", errno);
    } else if (!isReady(descriptor, POLLOUT, until)) {
      return fail(ErrorKind::Absent, "a rank takes no bytes in time");
    }
  }
  return {};
}

Result<void> TcpSocket::receiveAll(std::span<std::byte> bytes, Deadline until) {
  while (!bytes.empty()) {
    const ssize_t done =
        ::recv(descriptor, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (done > 0) {
      bytes = bytes.subspan(size_t(done));
    } else if (done == 0) {
      return fail(ErrorKind::Absent, "a rank ended while the ranks met");
    } else if (errno != EAGAIN && errno != EINTR) {
      return systemError("a rank is not heard", errno);
    } else if (!isReady(descriptor, POLLIN, until)) {
      return fail(ErrorKind::Absent, "a rank says nothing in time");
    }
  }
  return {};
}

bool TcpSocket::hasEnded() const {
  std::byte one{};
  const ssize_t done =
      ::recv(descriptor, &one, 1, MSG_PEEK | MSG_DONTWAIT | MSG_NOSIGNAL);
  return done == 0 || (done < 0 && errno != EAGAIN && errno != EWOULDBLOCK &&
                       errno != EINTR);
}

bool TcpAddress::isLoopback() const {
  if (bytes.ss_family == AF_INET)
    return ntohl(asFour(*this).sin_addr.s_addr) >> 24 == 127;
  const in6_addr &six = asSix(*this).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&six) ||
         (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
}

std::string TcpAddress::host() const {
  char name[NI_MAXHOST] = "";
  (void)getnameinfo(reinterpret_cast<const sockaddr *>(&bytes), size, name,
                    sizeof name, nullptr, 0, NI_NUMERICHOST);
  return name;
}

uint16_t TcpAddress::port() const {
  return ntohs(bytes.ss_family == AF_INET6 ? asSix(*this).sin6_port
                                           : asFour(*this).sin_port);
}

TcpAddress TcpAddress::withPort(uint16_t port) const {
  TcpAddress out = *this;
  if (bytes.ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6 &>(out.bytes).sin6_port = htons(port);
  else
    reinterpret_cast<sockaddr_in &>(out.bytes).sin_port = htons(port);
  return out;
}

TcpAddress loopbackAt(uint16_t port) {
  TcpAddress out;
  auto &four = reinterpret_cast<sockaddr_in &>(out.bytes);
  four.sin_family = AF_INET;
  four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  out.size = sizeof four;
  return out.withPort(port);
}

Result<std::vector<TcpAddress>> lookUp(const std::string &name, uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo *found = nullptr;
  const int code = getaddrinfo(name.c_str(), nullptr, &hints, &found);
  if (code != 0)
    return fail(ErrorKind::Absent,
                fmt::format("the address '{}': {}", name, gai_strerror(code)));
  std::vector<TcpAddress> out;
  for (const addrinfo *each = found; each; each = each->ai_next) {
    TcpAddress address;
    std::memcpy(&address.bytes, each->ai_addr, each->ai_addrlen);
    address.size = each->ai_addrlen;
    out.push_back(address.withPort(port));
  }
  freeaddrinfo(found);
  return out;
}

TcpAddress localOf(const TcpSocket &socket) {
  TcpAddress out;
  out.size = sizeof out.bytes;
  if (getsockname(socket.get(), reinterpret_cast<sockaddr *>(&out.bytes),
                  &out.size) != 0)
    return loopbackAt(0);
  return out;
}

Result<TcpSocket> listenOn(const TcpAddress &at) {
  TcpSocket out(::socket(at.bytes.ss_family,
                         SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  (void)setsockopt(out.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (at.bytes.ss_family == AF_INET6)
    (void)setsockopt(out.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (out.isOpen() &&
      ::bind(out.get(), reinterpret_cast<const sockaddr *>(&at.bytes),
             at.size) == 0 &&
      ::listen(out.get(), 4096) == 0)
    return out;
  return systemError(
      fmt::format("{} port {} cannot be listened on", at.host(), at.port()),
      errno);
}

Result<TcpSocket> connectTo(const TcpAddress &to) {
  TcpSocket out(::socket(to.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval most{5, 0}; // of connect(), which else takes minutes
  (void)setsockopt(out.get(), SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
  if (!out.isOpen() ||
      ::connect(out.get(), reinterpret_cast<const sockaddr *>(&to.bytes),
                to.size) != 0)
    return systemError(
        fmt::format("no connection to {} port {}", to.host(), to.port()),
        errno);
  makeQuick(out.get());
  return out;
}

Result<std::pair<TcpSocket, TcpAddress>> acceptOne(const TcpSocket &listening) {
  TcpAddress from;
  from.size = sizeof from.bytes;
  TcpSocket out(::accept4(listening.get(),
                          reinterpret_cast<sockaddr *>(&from.bytes), &from.size,
                          SOCK_CLOEXEC));
  if (out.isOpen())
    makeQuick(out.get());
  else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
           errno == ENOMEM)
    return systemError("a connection cannot be taken", errno);
  return std::pair(std::move(out), from);
}

} // namespace mgpu::device

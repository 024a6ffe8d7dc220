// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/tcp/TcpSocket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
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

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo *)>;

Result<Addresses> lookUp(const char *address, uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo *found = nullptr;
  const int code =
      getaddrinfo(address, std::to_string(port).c_str(), &hints, &found);
  if (code != 0)
    return fail(ErrorKind::Absent, fmt::format("the address '{}': {}", address,
                                               gai_strerror(code)));
  return Addresses(found, freeaddrinfo);
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

Result<TcpSocket> listenOn(uint16_t port) {
  // One socket takes both families; where the system has no IPv6, the other.
  for (int family : {AF_INET6, AF_INET}) {
    TcpSocket out(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!out.isOpen())
      continue;
    const int on = 1, off = 0;
    (void)setsockopt(out.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (family == AF_INET6)
      (void)setsockopt(out.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    const bool isSix = family == AF_INET6;
    const auto *address = isSix ? reinterpret_cast<const sockaddr *>(&six)
                                : reinterpret_cast<const sockaddr *>(&four);
    if (::bind(out.get(), address, isSix ? sizeof six : sizeof four) == 0 &&
        ::listen(out.get(), 1024) == 0)
      return out;
    if (errno == EADDRINUSE)
      break;
  }
  return systemError(fmt::format("port {} cannot be listened on", port), errno);
}

uint16_t portOf(const TcpSocket &listening) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  if (getsockname(listening.get(), reinterpret_cast<sockaddr *>(&address),
                  &bytes) != 0)
    return 0;
  return address.ss_family == AF_INET6
             ? ntohs(reinterpret_cast<sockaddr_in6 &>(address).sin6_port)
             : ntohs(reinterpret_cast<sockaddr_in &>(address).sin_port);
}

Result<std::pair<TcpSocket, std::string>> acceptOne(const TcpSocket &listening,
                                                    TcpSocket::Deadline until) {
  while (isReady(listening.get(), POLLIN, until)) {
    sockaddr_storage from{};
    socklen_t bytes = sizeof from;
    auto *address = reinterpret_cast<sockaddr *>(&from);
    TcpSocket out(::accept4(listening.get(), address, &bytes, SOCK_CLOEXEC));
    if (!out.isOpen())
      continue;
    makeQuick(out.get());
    char name[NI_MAXHOST] = "";
    (void)getnameinfo(address, bytes, name, sizeof name, nullptr, 0,
                      NI_NUMERICHOST);
    return std::pair(std::move(out), std::string(name));
  }
  return fail(ErrorKind::Absent, "no connection came in time");
}

Result<TcpSocket> connectTo(const std::string &address, uint16_t port,
                            TcpSocket::Deadline until) {
  int code = 0;
  do {
    MGPU_TRY_ASSIGN(const Addresses found, lookUp(address.c_str(), port, 0));
    for (const addrinfo *each = found.get(); each; each = each->ai_next) {
      TcpSocket out(
          ::socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, 0));
      const timeval most{5, 0}; // of connect(), which else takes minutes
      (void)setsockopt(out.get(), SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
      if (out.isOpen() &&
          ::connect(out.get(), each->ai_addr, each->ai_addrlen) == 0) {
        makeQuick(out.get());
        return out;
      }
      code = errno;
    }
    usleep(20'000);
  } while (std::chrono::steady_clock::now() < until);
  return systemError(
      fmt::format("no connection to {} port {} in time", address, port), code);
}

} // namespace mgpu::device

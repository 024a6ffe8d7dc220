// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/tcp/Reception.h"

#include <cerrno>
#include <poll.h>

namespace mgpu::device {

/// A rank says at once what it has to say, so who came long before many others
/// and has not is none. A rank that is sent away comes again.
static constexpr size_t mostVisitors = 256;

/// Sleeps until something has come, no longer than a moment.
void Reception::await(TcpSocket::Deadline until) {
  std::vector<pollfd> all{{listening.get(), POLLIN, 0}};
  for (const Visitor &each : visitors)
    all.push_back({each.socket.get(), POLLIN, 0});
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      until - std::chrono::steady_clock::now());
  (void)::poll(all.data(), all.size(),
               int(std::clamp<int64_t>(left.count() + 1, 0, 1000)));
}

void Reception::dismissFirst() {
  visitors.pop_front();
  ++strangers;
}

/// Lets in some of those that wait, and not all at once, so that those that are
/// in are served in between.
void Reception::takeAll() {
  for (size_t k = 0; k < mostVisitors / 4; ++k) {
    auto come = acceptOne(listening);
    if (!come && !visitors.empty()) {
      dismissFirst();
      continue;
    }
    if (!come || !come->first.isOpen())
      return;
    if (visitors.size() == mostVisitors)
      dismissFirst();
    visitors.push_back(
        {std::move(come->first), come->second.host(), Admission(here)});
  }
}

bool Reception::serve(Visitor &visitor) {
  while (true) {
    const std::span<std::byte> room = visitor.admission.room();
    const ssize_t done = ::recv(visitor.socket.get(), room.data(), room.size(),
                                MSG_DONTWAIT | MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return false;
    const auto step = done > 0 ? visitor.admission.took(size_t(done))
                               : Admission::Step::Refuse;
    bool isStranger = step == Admission::Step::Refuse;
    if (step == Admission::Step::Reply || step == Admission::Step::Welcome) {
      // It is short, and nothing waits before it.
      const auto reply = visitor.admission.reply();
      isStranger = ::send(visitor.socket.get(), reply.data(), reply.size(),
                          MSG_DONTWAIT | MSG_NOSIGNAL) != ssize_t(reply.size());
    }
    if (isStranger)
      visitor.socket.close();
    if (isStranger || step == Admission::Step::Welcome)
      return !isStranger;
  }
}

Result<Guest> Reception::next(TcpSocket::Deadline until) {
  do {
    await(until);
    takeAll();
    for (size_t k = 0; k < visitors.size();) {
      Visitor &visitor = visitors[k];
      const bool isGuest = serve(visitor);
      if (!isGuest && visitor.socket.isOpen()) {
        ++k;
        continue;
      }
      Guest guest{std::move(visitor.socket), visitor.admission.hello(),
                  std::move(visitor.address)};
      visitors.erase(visitors.begin() + ptrdiff_t(k));
      if (isGuest)
        return guest;
      ++strangers;
    }
  } while (std::chrono::steady_clock::now() < until);
  return fail(ErrorKind::Absent, "no rank came in time");
}

} // namespace mgpu::device

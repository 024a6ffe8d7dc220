// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/ChildProcess.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <new>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace mgpu {

namespace {

using Clock = std::chrono::steady_clock;

/// `tag` is the kind of an answer: 0, or 1 + FaultKind.
struct Header {
  uint64_t size = 0;
  uint64_t tag = 0;
};

enum class Transfer : uint8_t { Done, Closed, Late };

Clock::time_point timeAfter(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(seconds));
}

/// Moves all of `size` bytes one way; `deadline` null waits for ever.
Transfer transfer(int socket, std::byte *bytes, size_t size, bool sending,
                  const Clock::time_point *deadline) {
  while (size > 0) {
    int wait = -1;
    if (deadline) {
      auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline -
                                                               Clock::now());
      wait = int(std::clamp<int64_t>(left.count(), 0, 1 << 30));
    }
    pollfd ready{socket, short(sending ? POLLOUT : POLLIN), 0};
    int found = poll(&ready, 1, wait);
    if (found < 0 && errno == EINTR)
      continue;
    if (found == 0)
      return Transfer::Late;
    ssize_t moved = sending ? send(socket, bytes, size, MSG_NOSIGNAL)
                            : recv(socket, bytes, size, 0);
    if (moved < 0 && errno == EINTR)
      continue;
    if (found < 0 || moved <= 0)
      return Transfer::Closed;
    bytes += moved;
    size -= size_t(moved);
  }
  return Transfer::Done;
}

Transfer sendMessage(int socket, uint64_t tag, std::span<const std::byte> body,
                     const Clock::time_point *deadline) {
  Header header{body.size(), tag};
  Transfer sent = transfer(socket, reinterpret_cast<std::byte *>(&header),
                           sizeof header, true, deadline);
  return sent != Transfer::Done
             ? sent
             : transfer(socket, const_cast<std::byte *>(body.data()),
                        body.size(), true, deadline);
}

[[noreturn]] void serve(int socket, const ChildProcess::Handler &handler) {
  while (true) {
    Header header;
    if (transfer(socket, reinterpret_cast<std::byte *>(&header), sizeof header,
                 false, nullptr) != Transfer::Done)
      _exit(0);
    Outcome<Bytes> answer;
    try {
      Bytes request(header.size);
      if (transfer(socket, request.data(), request.size(), false, nullptr) !=
          Transfer::Done)
        _exit(0);
      answer = handler(request);
    } catch (const std::bad_alloc &) {
      answer = fault(FaultKind::OverLimit, "ran out of memory");
    } catch (const std::exception &error) {
      answer = fault(FaultKind::Refused, error.what());
    }
    Transfer sent =
        answer ? sendMessage(socket, 0, *answer, nullptr)
               : sendMessage(socket, 1 + uint64_t(answer.error().kind),
                             std::as_bytes(std::span(answer.error().what)),
                             nullptr);
    if (sent != Transfer::Done)
      _exit(0);
  }
}

void beChild(pid_t parent, const ChildLimits &limits) {
  setpgid(0, 0); // an interrupt of the terminal is the parent's to handle
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(0);
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE})
    std::signal(number, SIG_DFL);
  rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  if (limits.memoryBytes && memoryLimitWorks) {
    rlimit most{limits.memoryBytes, limits.memoryBytes};
    setrlimit(RLIMIT_DATA, &most);
  }
  int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0) {
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
  }
}

} // namespace

std::string_view toString(FaultKind kind) {
  constexpr std::array<std::string_view, 6> names = {
      "crash",        "hang",       "out-of-bounds",
      "wrong-result", "over-limit", "refused"};
  return names[size_t(kind)];
}

Result<ChildProcess> ChildProcess::start(Handler handler, ChildLimits limits) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fail(ErrorKind::Absent,
                fmt::format("cannot start a worker process: {}; close some "
                            "programs",
                            std::strerror(errno)));
  fflush(nullptr); // or what is buffered would be printed twice
  pid_t parent = getpid(), child = fork();
  if (child < 0) {
    int code = errno;
    close(ends[0]);
    close(ends[1]);
    return fail(ErrorKind::Absent,
                fmt::format("cannot start a worker process: {}; close some "
                            "programs",
                            std::strerror(code)));
  }
  if (child == 0) {
    close(ends[0]);
    beChild(parent, limits);
    serve(ends[1], handler);
  }
  close(ends[1]);
  setpgid(child, child); // whichever of us is first
  return ChildProcess(child, ends[0]);
}

ChildProcess::ChildProcess(ChildProcess &&other) noexcept
    : child(std::exchange(other.child, -1)),
      socket(std::exchange(other.socket, -1)), death(std::move(other.death)) {}

ChildProcess &ChildProcess::operator=(ChildProcess &&other) noexcept {
  if (this != &other) {
    end();
    child = std::exchange(other.child, -1);
    socket = std::exchange(other.socket, -1);
    death = std::move(other.death);
  }
  return *this;
}

ChildProcess::~ChildProcess() { end(); }

void ChildProcess::end() {
  if (child > 0) {
    kill(-child, SIGKILL);
    kill(child, SIGKILL);
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR)
      ;
    child = -1;
  }
  if (socket >= 0)
    close(std::exchange(socket, -1));
}

/// Reaps a child that closed its end or is late, and keeps why.
Fault ChildProcess::lose(bool isLate, double seconds) {
  Fault why{FaultKind::Crash, ""};
  if (isLate)
    why = {FaultKind::Hang,
           fmt::format("gave no answer within {:.1f} s", seconds)};
  int status = 0;
  if (isLate)
    kill(-child, SIGKILL);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  kill(-child, SIGKILL); // what it started
  child = -1;
  if (!isLate && WIFSIGNALED(status)) {
    int number = WTERMSIG(status);
    why.kind = number == SIGKILL ? FaultKind::OverLimit : FaultKind::Crash;
    why.what = number == SIGKILL
                   ? "was killed by the system, for memory as a rule"
                   : fmt::format("crashed: {}", strsignal(number));
  } else if (!isLate) {
    why.what =
        fmt::format("ended by itself with exit code {}", WEXITSTATUS(status));
  }
  death = why;
  end();
  return why;
}

Outcome<void> ChildProcess::post(std::span<const std::byte> request,
                                 double seconds) {
  if (child < 0)
    return tl::make_unexpected(death);
  Clock::time_point deadline = timeAfter(seconds);
  Transfer sent = sendMessage(socket, 0, request, &deadline);
  if (sent != Transfer::Done)
    return tl::make_unexpected(lose(sent == Transfer::Late, seconds));
  return {};
}

std::optional<size_t>
ChildProcess::firstReady(std::span<ChildProcess *const> children,
                         double seconds) {
  std::vector<pollfd> ends;
  for (const ChildProcess *child : children) // poll() passes over negative ones
    ends.push_back({child ? child->socket : -1, POLLIN, 0});
  if (poll(ends.data(), ends.size(), int(seconds * 1e3)) <= 0)
    return std::nullopt;
  for (size_t k = 0; k < ends.size(); ++k)
    if (ends[k].revents)
      return k;
  return std::nullopt;
}

Outcome<Bytes> ChildProcess::receive(double seconds) {
  if (child < 0)
    return tl::make_unexpected(death);
  Clock::time_point deadline = timeAfter(seconds);
  Header header;
  Transfer got = transfer(socket, reinterpret_cast<std::byte *>(&header),
                          sizeof header, false, &deadline);
  if (got != Transfer::Done)
    return tl::make_unexpected(lose(got == Transfer::Late, seconds));
  // A candidate may have scribbled over its own process: trust no size.
  if (header.size > uint64_t(64) << 30 ||
      header.tag > 1 + uint64_t(FaultKind::Refused)) {
    kill(-child, SIGKILL);
    return tl::make_unexpected(lose(/*isLate=*/false, seconds));
  }
  Bytes body(header.size);
  got = transfer(socket, body.data(), body.size(), false, &deadline);
  if (got != Transfer::Done)
    return tl::make_unexpected(lose(got == Transfer::Late, seconds));
  if (header.tag == 0)
    return body;
  return fault(
      FaultKind(header.tag - 1),
      std::string(reinterpret_cast<const char *>(body.data()), body.size()));
}

} // namespace mgpu

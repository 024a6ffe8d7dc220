// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/pjrt/SpawnedCommand.h"

#include "support/ChildProcess.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace mgpu::pipeline::pjrt {

using Clock = std::chrono::steady_clock;

namespace {

/// The state that the child begins with.
class Spawn {
public:
  Spawn(const std::string &folder, int standardError) {
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, standardError, 2);
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP |
                                              POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes, &signals);
  }
  ~Spawn() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  Spawn(const Spawn &) = delete;
  Spawn &operator=(const Spawn &) = delete;

  int start(std::vector<std::string> words, pid_t &child) {
    std::vector<char *> pointers;
    for (std::string &word : words)
      pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return posix_spawn(&child, pointers[0], &actions, &attributes,
                       pointers.data(), environ);
  }

private:
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

void limitMemory(pid_t child) {
  if (!memoryLimitWorks)
    return;
  const auto bytes =
      rlim_t(::sysconf(_SC_PHYS_PAGES)) * rlim_t(::sysconf(_SC_PAGESIZE));
  const rlimit limit{bytes / 4 * 3, bytes / 4 * 3};
  (void)::prlimit(child, RLIMIT_DATA, &limit, nullptr);
}

/// Milliseconds until `end`, rounded up; 0 once it is past.
int untilEnd(Clock::time_point end) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
  return int(std::clamp<int64_t>(left.count(), 0, 1 << 30));
}

/// Reads what the child says until it closes its end, or the time is over.
void listen(int pipe, Clock::time_point end, std::string &said) {
  constexpr size_t most = 1 << 20; // more is read, and forgotten
  char buffer[4096];
  for (int left = untilEnd(end); left > 0; left = untilEnd(end)) {
    pollfd ready{pipe, POLLIN, 0};
    const int found = ::poll(&ready, 1, left);
    if (found < 0 && errno == EINTR)
      continue;
    if (found <= 0)
      return;
    const ssize_t size = ::read(pipe, buffer, sizeof buffer);
    if (size < 0 && errno == EINTR)
      continue;
    if (size <= 0)
      return;
    if (said.size() < most)
      said.append(buffer, size_t(size));
  }
}

/// Waits for the child; after `end` it is killed with all that it started.
CommandEnd waitFor(pid_t child, Clock::time_point end) {
  CommandEnd out;
  int status = 0;
  for (bool isKilled = false;;) {
    const pid_t ended = ::waitpid(child, &status, isKilled ? 0 : WNOHANG);
    if (ended == child)
      break;
    if (ended < 0 && errno != EINTR) { // the caller has no news of its children
      out.how = CommandEnd::Unknown;
      return out;
    }
    if (ended == 0 && untilEnd(end) == 0) {
      ::kill(-child, SIGKILL);
      isKilled = true;
      out.how = CommandEnd::Late;
    } else if (ended == 0) {
      ::usleep(500);
    }
  }
  if (out.how == CommandEnd::Late)
    return out;
  out.how = WIFEXITED(status) ? CommandEnd::Exited : CommandEnd::Killed;
  out.code = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
  return out;
}

} // namespace

Result<CommandEnd> runCommand(const std::vector<std::string> &words,
                              const std::string &folder, double seconds) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(seconds));
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0)
    return fail(ErrorKind::Absent,
                fmt::format("no pipe can be made: {}", std::strerror(errno)));
  // The child's first three are its own.
  for (int &side : pipe)
    if (side < 3) {
      const int higher = ::fcntl(side, F_DUPFD_CLOEXEC, 3);
      ::close(side);
      side = higher;
    }
  pid_t child = -1;
  const int error = Spawn(folder, pipe[1]).start(words, child);
  ::close(pipe[1]);
  if (error != 0) {
    ::close(pipe[0]);
    return fail(ErrorKind::Absent, fmt::format("'{}' cannot be started: {}",
                                               words[0], std::strerror(error)));
  }
  limitMemory(child);
  std::string said;
  listen(pipe[0], end, said);
  ::close(pipe[0]);
  CommandEnd out = waitFor(child, end);
  out.said = std::move(said);
  return out;
}

} // namespace mgpu::pipeline::pjrt

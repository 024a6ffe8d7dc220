// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_DB_PROCESS_H
#define MGPU_TESTS_UNIT_DB_PROCESS_H

#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <functional>
#include <sys/wait.h>
#include <unistd.h>

namespace mgpu::db {

/// A child that runs `body` and says how far it came: body(say) reports
/// numbers, which the parent reads once the child is gone. Fork it while no
/// database is open.
class Child {
public:
  using Say = std::function<void(uint64_t)>;
  explicit Child(const std::function<int(const Say &)> &body) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    id = ::fork();
    if (id == 0) {
      ::close(ends[0]);
      int code = body([&](uint64_t number) {
        if (::write(ends[1], &number, sizeof number) != sizeof number)
          ::_exit(99);
      });
      ::_exit(code);
    }
    ::close(ends[1]);
    in = ends[0];
  }
  Child(const Child &) = delete;
  Child &operator=(const Child &) = delete;
  ~Child() {
    if (id > 0)
      kill();
    ::close(in);
  }

  void kill() {
    ::kill(id, SIGKILL);
    wait();
  }
  /// The exit code, or -1 where a signal ended it.
  int wait() {
    int status = 0;
    ::waitpid(id, &status, 0);
    id = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  /// The next number it said; false at the end.
  bool next(uint64_t &number) {
    return ::read(in, &number, sizeof number) == sizeof number;
  }
  /// How many numbers are left, and the last of them.
  uint64_t drain(uint64_t &last) {
    uint64_t count = 0;
    while (next(last))
      ++count;
    return count;
  }

private:
  pid_t id = -1;
  int in = -1;
};

} // namespace mgpu::db

#endif // MGPU_TESTS_UNIT_DB_PROCESS_H

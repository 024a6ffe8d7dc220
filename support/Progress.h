// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_PROGRESS_H
#define MGPU_SUPPORT_PROGRESS_H

// Tells a person who waits how far a step of many parts is.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>
#include <sys/ioctl.h>
#include <unistd.h>

namespace mgpu {

/// One line of a terminal that is written again and again, cut to the
/// terminal's width, and gone at the end.
class TerminalLine {
public:
  explicit TerminalLine(int fd = STDERR_FILENO)
      : fd(fd), terminal(isatty(fd) == 1) {}
  ~TerminalLine() { clear(); }
  TerminalLine(const TerminalLine &) = delete;
  TerminalLine &operator=(const TerminalLine &) = delete;

  /// If not, nothing is shown.
  bool isTerminal() const { return terminal; }
  void show(std::string line) {
    if (!terminal)
      return;
    winsize size{};
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 1)
      line.resize(std::min<size_t>(line.size(), size.ws_col - 1));
    dprintf(fd, "\r\033[K%s", line.c_str());
    isShown = true;
  }

  /// Before anything else is printed.
  void clear() {
    if (isShown)
      dprintf(fd, "\r\033[K");
    isShown = false;
  }

private:
  int fd;
  bool terminal, isShown = false;
};

/// "compiling kernels for x86-64-v3: 12 of 29", on stderr: on a terminal a line
/// that counts from a second on and is gone at the end, elsewhere a line every
/// ten seconds. Nothing is shown before enable(), so a library stays silent.
class Progress {
public:
  Progress(std::string what, size_t total, int fd = STDERR_FILENO);
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  /// One part is done. Thread-safe.
  void step();

  /// For a command, once, before it has threads.
  static void enable();

private:
  using Clock = std::chrono::steady_clock;
  const std::string what;
  const size_t total;
  const int fd;
  std::mutex mutex;
  size_t done = 0;
  TerminalLine line;
  Clock::time_point next; ///< when the line is shown again
};

} // namespace mgpu

#endif // MGPU_SUPPORT_PROGRESS_H

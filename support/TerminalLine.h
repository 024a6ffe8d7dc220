// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_TERMINALLINE_H
#define MGPU_SUPPORT_TERMINALLINE_H

#include <algorithm>
#include <cstdio>
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

} // namespace mgpu

#endif // MGPU_SUPPORT_TERMINALLINE_H

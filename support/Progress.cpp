// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Progress.h"

#include <fmt/format.h>

namespace mgpu {

static bool isEnabled = false;

void Progress::enable() { isEnabled = true; }

Progress::Progress(std::string what, size_t total, int fd)
    : what(std::move(what)), total(total), fd(fd), line(fd),
      next(Clock::now() + std::chrono::seconds(line.isTerminal() ? 1 : 10)) {}

void Progress::step() {
  std::lock_guard lock(mutex);
  ++done;
  if (!isEnabled || Clock::now() < next)
    return;
  const std::string text = fmt::format("{}: {} of {}", what, done, total);
  if (line.isTerminal()) {
    line.show(text);
    return;
  }
  dprintf(fd, "mgpu-tune: %s\n", text.c_str());
  next += std::chrono::seconds(10);
}

} // namespace mgpu

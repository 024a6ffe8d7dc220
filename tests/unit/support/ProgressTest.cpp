// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Progress.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <thread>

using namespace mgpu;

namespace {

/// What a terminal got of a step of three parts, the second of which took more
/// than a second.
std::string shown() {
  int master = -1, terminal = -1;
  EXPECT_EQ(openpty(&master, &terminal, nullptr, nullptr, nullptr), 0);
  {
    Progress progress("compiling", 3, terminal);
    progress.step();
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    progress.step();
    progress.step();
  }
  dprintf(terminal, "end");
  std::string text;
  char some[256];
  for (ssize_t n; !text.ends_with("end") && (n = read(master, some, 256)) > 0;)
    text.append(some, size_t(n));
  close(terminal);
  close(master);
  return text;
}

// A library's own steps are silent, so this test comes before enable().
TEST(Progress, ATerminalSeesHowFarAStepIsOnceItTakesASecond) {
  EXPECT_EQ(shown(), "end");
  Progress::enable();
  const std::string text = shown();
  EXPECT_EQ(text.find("compiling: 1 of 3"), text.npos);
  EXPECT_NE(text.find("compiling: 2 of 3"), text.npos);
  EXPECT_NE(text.find("compiling: 3 of 3"), text.npos);
  EXPECT_TRUE(text.ends_with("\r\033[Kend")) << text;
}

} // namespace

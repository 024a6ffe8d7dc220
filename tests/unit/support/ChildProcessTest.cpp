// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/ChildProcess.h"

#include <chrono>
#include <csignal>
#include <cstring>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace mgpu {
namespace {

Bytes toBytes(std::string_view text) {
  auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}
std::string textOf(const Bytes &bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

Outcome<Bytes> echo(std::span<const std::byte> request) {
  return Bytes(request.begin(), request.end());
}

TEST(ChildProcess, AnswersRequestsLargeAndSmall) {
  auto forked = ChildProcess::start(echo);
  ASSERT_TRUE(forked);
  EXPECT_NE(forked->process(), getpid());
  EXPECT_EQ(textOf(*forked->ask(toBytes("hello"), 5)), "hello");
  EXPECT_EQ(forked->ask({}, 5)->size(), 0u);
  // More than a socket holds, both ways.
  Bytes large(5'000'000);
  for (size_t k = 0; k < large.size(); ++k)
    large[k] = std::byte(k * 7);
  EXPECT_EQ(*forked->ask(large, 20), large);
}

TEST(ChildProcess, AFaultIsAnAnswerAndTheChildLivesOn) {
  auto forked = ChildProcess::start([](auto request) -> Outcome<Bytes> {
    if (request.empty())
      return fault(FaultKind::WrongResult, "no");
    if (request.size() == 1)
      throw std::bad_alloc();
    return Bytes(request.begin(), request.end());
  });
  ASSERT_TRUE(forked);
  auto answer = forked->ask({}, 5);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, FaultKind::WrongResult);
  EXPECT_EQ(answer.error().what, "no");
  EXPECT_EQ(forked->ask(toBytes("x"), 5).error().kind, FaultKind::OverLimit);
  EXPECT_TRUE(forked->ask(toBytes("xx"), 5));
}

TEST(ChildProcess, ACrashSaysHowAndStaysSaid) {
  auto forked = ChildProcess::start([](auto) -> Outcome<Bytes> {
    std::signal(SIGABRT, SIG_DFL);
    std::raise(SIGABRT);
    return Bytes();
  });
  ASSERT_TRUE(forked);
  pid_t child = forked->process();
  for (int k = 0; k < 2; ++k) {
    auto answer = forked->ask({}, 5);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().kind, FaultKind::Crash);
    EXPECT_EQ(answer.error().what, "crashed: Aborted");
  }
  EXPECT_EQ(kill(child, 0), -1) << "reaped, or it would be there as a zombie";
}

TEST(ChildProcess, AHangEndsAtTheDeadlineWithWhatItStarted) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  auto forked = ChildProcess::start([&](auto) -> Outcome<Bytes> {
    pid_t grandchild = fork();
    if (grandchild == 0)
      while (true)
        pause();
    if (write(ends[1], &grandchild, sizeof grandchild) < 0)
      _exit(9);
    while (true)
      pause();
  });
  ASSERT_TRUE(forked);
  auto start = std::chrono::steady_clock::now();
  auto answer = forked->ask({}, 0.2);
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, FaultKind::Hang);
  EXPECT_GE(took.count(), 0.2);
  EXPECT_LT(took.count(), 5);
  pid_t grandchild = 0;
  ASSERT_EQ(read(ends[0], &grandchild, sizeof grandchild),
            ssize_t(sizeof grandchild));
  // Killed, then reaped by whoever adopts it.
  for (int tries = 0; tries < 100 && kill(grandchild, 0) == 0; ++tries) {
    std::string path = "/proc/" + std::to_string(grandchild) + "/stat";
    FILE *file = fopen(path.c_str(), "r");
    char state = 'X';
    if (file) {
      EXPECT_EQ(fscanf(file, "%*d %*s %c", &state), 1);
      fclose(file);
    }
    if (state == 'Z' || state == 'X')
      break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_LT(tries, 99) << "the grandchild still runs";
  }
  close(ends[0]);
  close(ends[1]);
}

TEST(ChildProcess, AnAnswerThatIsNoneIsACrash) {
  auto forked = ChildProcess::start([](auto) -> Outcome<Bytes> {
    // What a candidate does that scribbles over the file descriptors.
    uint64_t junk[2] = {~uint64_t(0), 77};
    for (int file = 3; file < 64; ++file)
      if (send(file, junk, sizeof junk, MSG_NOSIGNAL) > 0)
        break;
    return Bytes();
  });
  ASSERT_TRUE(forked);
  auto answer = forked->ask({}, 5);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().kind, FaultKind::Hang);
}

TEST(ChildProcess, EndsWithItsOwner) {
  pid_t child = -1;
  {
    auto forked = ChildProcess::start(echo);
    ASSERT_TRUE(forked);
    child = forked->process();
    ChildProcess moved = std::move(*forked);
    EXPECT_TRUE(moved.ask(toBytes("x"), 5));
  }
  EXPECT_EQ(kill(child, 0), -1);
}

TEST(ChildProcess, MemoryHasALimit) {
  if (!memoryLimitWorks)
    GTEST_SKIP() << "a sanitizer's shadow memory leaves no room for a limit";
  auto forked = ChildProcess::start(
      [](auto) -> Outcome<Bytes> { return Bytes(size_t(1) << 30); },
      ChildLimits{uint64_t(256) << 20});
  ASSERT_TRUE(forked);
  auto answer = forked->ask({}, 20);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, FaultKind::OverLimit);
}

} // namespace
} // namespace mgpu

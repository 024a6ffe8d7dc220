// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/api/MessageRendezvous.h"
#include "device/host/HostDriver.h"
#include "device/tcp/TcpChannel.h"

#include "tests/unit/device/RendezvousBody.h"

#include <barrier>
#include <csignal>
#include <functional>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace mgpu::device {
namespace {

using std::chrono::milliseconds;

constexpr uint32_t numRanks = 3;

/// A port that was free a moment ago.
uint16_t freePort() {
  auto listening = listenOn(loopbackAt(0));
  EXPECT_TRUE(listening) << listening.error().message;
  return localOf(*listening).port();
}

Result<std::unique_ptr<MessageRendezvous>>
join(const TcpPlace &place, milliseconds deadline = std::chrono::seconds(20)) {
  MGPU_TRY_ASSIGN(auto channel, joinByTcp(place, std::chrono::seconds(20)));
  return std::make_unique<MessageRendezvous>(std::move(channel), deadline,
                                             milliseconds(100));
}

void inRanks(const std::function<void(MessageRendezvous &)> &rank,
             milliseconds deadline = std::chrono::seconds(20),
             uint32_t count = numRanks) {
  const uint16_t port = freePort();
  std::vector<std::thread> threads;
  for (uint32_t k = 0; k < count; ++k)
    threads.emplace_back([&, k] {
      auto others = join({k, count, "127.0.0.1", port}, deadline);
      ASSERT_TRUE(others) << others.error().message;
      rank(**others);
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(Tcp, AllGetWhatEachGaveRoundAfterRound) {
  inRanks([](Rendezvous &others) { checkExchange(others, 50'000); });
  inRanks([](Rendezvous &others) { checkExchange(others, 10); },
          milliseconds(20'000), 1);
}

TEST(Tcp, TheLargestIsThatOfAll) { inRanks(checkLargest); }

TEST(Tcp, NobodyWaitsForARankThatGaveUp) { inRanks(checkAbort); }

TEST(Tcp, OneThatDoesNotComeIsNamedByAll) {
  std::barrier over(numRanks);
  inRanks(
      [&](Rendezvous &others) {
        checkLate(others);
        over.arrive_and_wait();
      },
      milliseconds(100));
}

// Messages of all sizes between any two, many at once, in order.
TEST(Tcp, MessagesArriveInOrderAndWhole) {
  inRanks([](MessageRendezvous &others) {
    for (uint32_t round = 0; round < 20; ++round) {
      const size_t sizes[] = {1, 300'000 * (round % 3), 0, 77};
      auto text = [&](uint32_t from, uint32_t to, size_t k) {
        return Bytes(sizes[k], std::byte(from * 16 + to + k + round));
      };
      std::vector<Bytes> given, got;
      std::vector<Outgoing> sends;
      std::vector<Incoming> recvs;
      given.reserve(64), got.reserve(64);
      for (uint32_t other = 0; other < numRanks; ++other)
        for (size_t k = 0; k < 4 && other != others.rank(); ++k) {
          given.push_back(text(others.rank(), other, k));
          sends.push_back({other, given.back()});
          got.emplace_back(sizes[k]);
          recvs.push_back({other, got.back()});
        }
      auto ok = others.transfer(sends, recvs, "a test");
      ASSERT_TRUE(ok) << ok.error().message;
      for (size_t k = 0; k < got.size(); ++k)
        ASSERT_EQ(got[k], text(recvs[k].from, others.rank(), k % 4));
    }
  });
}

TEST(Tcp, RanksThatDisagreeAboutALengthSaySo) {
  inRanks(
      [](MessageRendezvous &others) {
        Bytes bytes(others.rank() == 0 ? 8 : 9);
        std::vector<Outgoing> sends;
        std::vector<Incoming> recvs;
        if (others.rank() == 0)
          sends.push_back({1, bytes});
        if (others.rank() == 1)
          recvs.push_back({0, bytes});
        auto first = others.transfer(sends, recvs, "a test");
        if (others.rank() == 1) {
          ASSERT_FALSE(first);
          EXPECT_EQ(first.error().kind, ErrorKind::Absent); // no fault of ours
          EXPECT_EQ(first.error().message,
                    "a test: rank 0 sends 8 bytes, and rank 1 receives 9");
        }
        EXPECT_FALSE(others.meet()); // of any
      },
      milliseconds(5000));
}

TEST(Tcp, RanksThatDifferSayTheSame) {
  inRanks([](MessageRendezvous &others) {
    auto say = [&](uint32_t odd, const char *what) {
      const std::string mine = others.rank() == odd ? "that" : "this";
      return agree({{"version", "1"}, {what, mine}}, others);
    };
    EXPECT_TRUE(say(numRanks, "program"));
    for (const char *what : {"program", "plan"}) {
      auto ok = say(1, what);
      ASSERT_FALSE(ok);
      EXPECT_EQ(ok.error().message,
                std::string("rank 1 has another ") + what +
                    " than rank 0: 'that', and not 'this'; give all ranks the "
                    "same");
    }
    EXPECT_FALSE(say(0, "plan")); // then all others differ from it
  });
}

// However ranks are numbered, those of one machine have devices beside each
// other, and rank 0 has the first.
TEST(Tcp, DevicesOfOneMachineAreBesideEachOther) {
  inRanks([](MessageRendezvous &others) {
    const uint32_t rank = others.rank();
    EXPECT_EQ(others.ranksByNode(), (std::vector<uint32_t>{0, 1, 2}));
    EXPECT_EQ(hostPart(5, others).ranks,
              (std::vector<uint32_t>{0, 0, 1, 1, 2}));
    ASSERT_TRUE(others.tellNode(rank == 1 ? "b" : "a"));
    EXPECT_EQ(others.nodeOf(), (std::vector<uint32_t>{0, 1, 0}));
    EXPECT_EQ(others.ranksByNode(), (std::vector<uint32_t>{0, 2, 1}));
    const HostPart even = hostPart(5, others);
    EXPECT_EQ(even.ranks, (std::vector<uint32_t>{0, 0, 2, 2, 1}));
    EXPECT_EQ(even.here.first, (std::vector<uint32_t>{0, 4, 2})[rank]);
    EXPECT_EQ(even.here.count, rank == 1 ? 1u : 2u);
    const std::vector<uint32_t> shares{3, 1, 0};
    const HostPart mixed = hostPart(shares, others);
    EXPECT_EQ(mixed.ranks, (std::vector<uint32_t>{0, 0, 0, 1}));
    EXPECT_EQ(mixed.here.count, shares[rank]);
    EXPECT_EQ(mixed.here.hasHost, rank == 0);
  });
}

/// What the ranks of `places` say when they join.
std::vector<std::string> wordsOf(const std::vector<TcpPlace> &places) {
  std::vector<std::string> words(places.size());
  std::vector<std::thread> threads;
  for (size_t k = 0; k < places.size(); ++k)
    threads.emplace_back([&, k] {
      auto channel = joinByTcp(places[k], std::chrono::milliseconds(1500));
      words[k] = channel ? "joined" : channel.error().message;
    });
  for (std::thread &thread : threads)
    thread.join();
  return words;
}

TEST(Tcp, RanksThatDoNotFitTogetherAreRefused) {
  const uint16_t port = freePort();
  const std::string here = "127.0.0.1";
  for (const std::string &text :
       wordsOf({{0, 2, here, port}, {1, 3, here, port}}))
    EXPECT_NE(text.find("rank 0 is one of 2 ranks, and rank 1 one of 3"),
              std::string::npos)
        << text;
  for (const std::string &text :
       wordsOf({{0, 3, here, port}, {1, 3, here, port}, {1, 3, here, port}}))
    EXPECT_NE(text.find("two ranks say they are rank 1"), std::string::npos)
        << text;
  for (const std::string &text :
       wordsOf({{0, 3, here, port}, {1, 3, here, port}}))
    EXPECT_NE(text.find("rank 2 did not come"), std::string::npos) << text;
}

TEST(Tcp, ThePlaceIsThatOfTheEnvironment) {
  auto none = tcpPlaceOfEnvironment();
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  setenv("RANK", "1", 1);
  setenv("WORLD_SIZE", "2", 1);
  auto partly = tcpPlaceOfEnvironment();
  ASSERT_FALSE(partly);
  EXPECT_EQ(partly.error().kind, ErrorKind::Usage);
  setenv("MASTER_PORT", "29500", 1);
  EXPECT_EQ((*tcpPlaceOfEnvironment())->address, "127.0.0.1");
  setenv("MASTER_ADDR", "node0", 1);
  auto place = tcpPlaceOfEnvironment();
  ASSERT_TRUE(place && *place);
  EXPECT_EQ((*place)->rank, 1u);
  EXPECT_EQ((*place)->count, 2u);
  EXPECT_EQ((*place)->address, "node0");
  EXPECT_EQ((*place)->port, 29500);
  for (const char *wrong : {"2", "-1", "one", ""}) {
    setenv("RANK", wrong, 1);
    EXPECT_FALSE(tcpPlaceOfEnvironment()) << wrong;
  }
  setenv("RANK", "1", 1);
  setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1); // it listens there itself
  EXPECT_EQ((*tcpPlaceOfEnvironment())->port, 29501);
  setenv("MGPU_PORT", "40000", 1);
  EXPECT_EQ((*tcpPlaceOfEnvironment())->port, 40000);
  for (const char *name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
                           "MGPU_PORT", "TORCHELASTIC_USE_AGENT_STORE"})
    unsetenv(name);
}

TEST(Tcp, ThePlaceIsThatOfSlurm) {
  const char *lists[][2] = {{"gpu[007-009,12],login", "gpu007"},
                            {"gpu[12,14]", "gpu12"},
                            {"one,two[1-2]", "one"},
                            {"rack-a[3-4]n", "rack-a3"},
                            // One node: nobody comes from elsewhere.
                            {"gpu[3]", "127.0.0.1"},
                            {"gpu-a[3]-b", "127.0.0.1"},
                            {"alone", "127.0.0.1"}};
  setenv("SLURM_PROCID", "3", 1);
  setenv("SLURM_NTASKS", "4", 1);
  setenv("SLURM_JOB_ID", "4294967295", 1);
  setenv("SLURM_STEP_ID", "1", 1);
  for (const auto &[list, first] : lists) {
    setenv("SLURM_JOB_NODELIST", list, 1);
    auto place = tcpPlaceOfEnvironment();
    ASSERT_TRUE(place && *place) << list;
    EXPECT_EQ((*place)->address, first);
    EXPECT_EQ((*place)->rank, 3u);
    EXPECT_EQ((*place)->count, 4u);
    EXPECT_GE((*place)->port, 15000);
    EXPECT_LT((*place)->port, 30000);
  }
  const uint16_t port = (*tcpPlaceOfEnvironment())->port;
  setenv("SLURM_STEP_ID", "2", 1); // steps of a job may run at once
  EXPECT_NE((*tcpPlaceOfEnvironment())->port, port);
  setenv("SLURM_STEP_NODELIST", "gpu12,gpu13", 1);
  EXPECT_EQ((*tcpPlaceOfEnvironment())->address, "gpu12");
  setenv("MASTER_ADDR", "10.0.0.1", 1);
  EXPECT_EQ((*tcpPlaceOfEnvironment())->address, "10.0.0.1");
  for (const char *name :
       {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_ID", "SLURM_STEP_ID",
        "SLURM_JOB_NODELIST", "SLURM_STEP_NODELIST", "MASTER_ADDR"})
    unsetenv(name);
}

/// A process for each rank but the last, which is this one. Each waits for all
/// in a meeting that the last never comes to, and ends with 0 where the error
/// names the process that `harm` was done to.
void checkHarmed(int signal, const char *words) {
  const uint16_t port = freePort();
  std::vector<pid_t> children;
  for (uint32_t k = 0; k + 1 < numRanks; ++k) {
    const pid_t child = fork();
    if (child == 0) {
      auto others = join({k, numRanks, "127.0.0.1", port}, milliseconds(1500));
      Result<void> met = others ? (*others)->meet() : fail(others.error());
      const bool isNamed =
          !met && met.error().message.find(words) != std::string::npos;
      if (!isNamed)
        fprintf(stderr, "%s\n", met ? "met" : met.error().message.c_str());
      _exit(isNamed ? 0 : 1);
    }
    children.push_back(child);
  }
  const pid_t victim = fork();
  if (victim == 0) {
    auto others =
        join({numRanks - 1, numRanks, "127.0.0.1", port}, milliseconds(60'000));
    raise(signal);
    _exit(9);
  }
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  kill(victim, SIGKILL);
  waitpid(victim, nullptr, 0);
}

TEST(Tcp, AProcessThatIsKilledIsNamedByAll) {
  checkHarmed(SIGKILL, "rank 2 ended without a word");
}

TEST(Tcp, AProcessThatStandsStillIsNamedByAll) {
  checkHarmed(SIGSTOP, "nothing was heard of rank 2");
}

} // namespace
} // namespace mgpu::device

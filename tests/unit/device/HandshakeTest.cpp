// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/tcp/Handshake.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace mgpu::device {
namespace {

using Step = Admission::Step;

Membership host(Bytes secret) { return {1, Nonce{std::byte(7)}, secret}; }

const Bytes secret(32, std::byte(42)), other(32, std::byte(43));

Hello helloOf(uint32_t rank) {
  Hello hello;
  hello.rank = rank;
  hello.count = 3;
  hello.to = 1;
  hello.port = 4000;
  hello.nonce.fill(std::byte(9));
  hello.meeting = host({}).meeting;
  return hello;
}

/// What the admission says to these bytes, given in pieces of at most `most`.
Step give(Admission &admission, std::span<const std::byte> bytes, size_t most) {
  while (!bytes.empty()) {
    const auto room = admission.room();
    const size_t count = std::min({most, bytes.size(), room.size()});
    std::copy_n(bytes.begin(), count, room.begin());
    bytes = bytes.subspan(count);
    if (const Step step = admission.took(count); step != Step::More)
      return bytes.empty() ? step : Step::Refuse;
  }
  return Step::More;
}

Step giveHello(Admission &admission, const Hello &hello, size_t most = 100) {
  return give(admission, std::as_bytes(std::span(&hello, 1)), most);
}

Answer answerOf(const Admission &admission) {
  Answer answer;
  std::copy_n(admission.reply().begin(), sizeof answer,
              std::as_writable_bytes(std::span(&answer, 1)).begin());
  return answer;
}

TEST(Handshake, AGuestWithTheSecretIsWelcome) {
  for (size_t most : {1, 7, 100})
    for (const Bytes &shared : {secret, Bytes()}) {
      const Membership here = host(shared);
      Admission admission(here);
      ASSERT_EQ(giveHello(admission, helloOf(2), most), Step::Reply);
      const Answer answer = answerOf(admission);
      EXPECT_EQ(answer.proof,
                proofOf(Side::Host, shared, helloOf(2), answer.nonce));
      EXPECT_EQ(give(admission,
                     proofOf(Side::Guest, shared, helloOf(2), answer.nonce),
                     most),
                Step::Welcome);
      EXPECT_EQ(admission.hello().rank, 2u);
      ASSERT_EQ(admission.reply().size(), 1u);
      EXPECT_EQ(admission.reply()[0], welcomeByte);
    }
}

TEST(Handshake, AnyOtherProofIsAStranger) {
  const Membership here = host(secret);
  auto stepOf = [&](auto &&proofFor) {
    Admission admission(here);
    EXPECT_EQ(giveHello(admission, helloOf(2)), Step::Reply);
    return give(admission, proofFor(answerOf(admission)), 100);
  };
  EXPECT_EQ(stepOf([](const Answer &answer) {
              return proofOf(Side::Guest, other, helloOf(2), answer.nonce);
            }),
            Step::Refuse);
  EXPECT_EQ(stepOf([](const Answer &answer) {
              return proofOf(Side::Guest, {}, helloOf(2), answer.nonce);
            }),
            Step::Refuse);
  EXPECT_EQ(stepOf([](const Answer &answer) { return answer.proof; }),
            Step::Refuse);                    // sent back
  EXPECT_EQ(stepOf([](const Answer &answer) { // of another rank
              return proofOf(Side::Guest, secret, helloOf(0), answer.nonce);
            }),
            Step::Refuse);
  const Digest heard = proofOf(Side::Guest, secret, helloOf(2), Nonce{});
  EXPECT_EQ(stepOf([&](const Answer &) { return heard; }), Step::Refuse);
}

// What was heard once is of no use: the host draws a number each time.
TEST(Handshake, AReplayIsRefused) {
  const Membership here = host(secret);
  Digest proof{};
  for (Step wanted : {Step::Welcome, Step::Refuse}) {
    Admission admission(here);
    ASSERT_EQ(giveHello(admission, helloOf(2)), Step::Reply);
    if (wanted == Step::Welcome)
      proof =
          proofOf(Side::Guest, secret, helloOf(2), answerOf(admission).nonce);
    EXPECT_EQ(give(admission, proof, 100), wanted);
  }
}

TEST(Handshake, AHelloForAnotherIsRefused) {
  const Membership here = host(secret);
  auto stepOf = [&](auto &&change) {
    Hello hello = helloOf(2);
    change(hello);
    Admission admission(here);
    return giveHello(admission, hello);
  };
  EXPECT_EQ(stepOf([](Hello &) {}), Step::Reply);
  EXPECT_EQ(stepOf([](Hello &hello) { ++hello.mark; }), Step::Refuse);
  EXPECT_EQ(stepOf([](Hello &hello) { hello.to = 0; }), Step::Refuse);
  EXPECT_EQ(stepOf([](Hello &hello) { hello.meeting = {}; }), Step::Refuse);
  EXPECT_EQ(stepOf([](Hello &hello) { hello.rank = ~0u; }), Step::Refuse);
  EXPECT_EQ(stepOf([](Hello &hello) { hello.count = ~0u; }), Step::Refuse);
  EXPECT_EQ(stepOf([](Hello &hello) { hello.port = 65536; }), Step::Refuse);
  // It is told so later, once it has proven that it is no stranger.
  EXPECT_EQ(stepOf([](Hello &hello) { hello.rank = 7; }), Step::Reply);
}

// A secret of zeros is none to HMAC, and the other way round.
TEST(Handshake, NoSecretIsNotOneOfZeros) {
  const Nonce nonce{};
  EXPECT_NE(proofOf(Side::Host, {}, helloOf(2), nonce),
            proofOf(Side::Host, Bytes(32), helloOf(2), nonce));
}

// Whatever comes, in whatever pieces, an admission takes no more bytes than it
// needs and welcomes nobody.
TEST(Handshake, RandomBytesAreStrangers) {
  std::mt19937_64 random(40);
  const Membership here = host(secret);
  uint32_t numReplies = 0;
  for (int round = 0; round < 20'000; ++round) {
    Admission admission(here);
    Hello hello = helloOf(2);
    auto bytes = std::as_writable_bytes(std::span(&hello, 1));
    for (uint64_t k = random() % 4; k > 0; --k)
      bytes[random() % bytes.size()] ^= std::byte(1 << random() % 8);
    Bytes all(bytes.begin(), bytes.end());
    all.resize(random() % 200);
    for (size_t k = sizeof hello; k < all.size(); ++k)
      all[k] = std::byte(random());
    Step step = Step::More;
    for (size_t at = 0; at < all.size();) {
      const auto room = admission.room();
      ASSERT_FALSE(room.empty());
      const size_t count =
          std::min({size_t(random() % 64 + 1), all.size() - at, room.size()});
      std::copy_n(all.begin() + ptrdiff_t(at), count, room.begin());
      at += count;
      step = admission.took(count);
      ASSERT_NE(step, Step::Welcome);
      numReplies += step == Step::Reply;
      if (step == Step::Refuse)
        break;
    }
  }
  EXPECT_GT(numReplies, 1000u);
}

/// A listening socket, and what enter() says to who does `host` there.
Result<void> enterAt(const std::function<void(TcpSocket &)> &host,
                     const Bytes &key) {
  auto listening = listenOn(loopbackAt(0));
  EXPECT_TRUE(listening);
  auto guest = connectTo(localOf(*listening));
  EXPECT_TRUE(guest);
  std::thread other([&] {
    auto come = acceptOne(*listening); // it is connected already
    ASSERT_TRUE(come && come->first.isOpen());
    host(come->first);
  });
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  Result<void> out = enter(*guest, helloOf(2), key, until);
  other.join();
  return out;
}

// A host that has no secret gets a hello and no proof.
TEST(Handshake, AHostileHostIsSentNothing) {
  const auto soon = [] {
    return std::chrono::steady_clock::now() + std::chrono::seconds(2);
  };
  for (const Bytes &key : {other, Bytes()}) {
    auto met = enterAt(
        [&](TcpSocket &socket) {
          Hello hello;
          ASSERT_TRUE(socket.receiveAll(
              std::as_writable_bytes(std::span(&hello, 1)), soon()));
          Answer answer;
          answer.proof = proofOf(Side::Host, key, hello, answer.nonce);
          ASSERT_TRUE(
              socket.sendAll(std::as_bytes(std::span(&answer, 1)), soon()));
          std::byte one{};
          EXPECT_FALSE(socket.receiveAll(std::span(&one, 1),
                                         std::chrono::steady_clock::now() +
                                             std::chrono::milliseconds(50)));
        },
        secret);
    ASSERT_FALSE(met);
    EXPECT_EQ(met.error().kind, ErrorKind::Absent);
    EXPECT_NE(met.error().message.find("does not prove"), std::string::npos);
  }
}

TEST(Handshake, ARandomHostIsRefused) {
  std::mt19937_64 random(41);
  for (int round = 0; round < 200; ++round) {
    auto met = enterAt(
        [&](TcpSocket &socket) {
          Bytes bytes(random() % 3000);
          for (std::byte &each : bytes)
            each = std::byte(random());
          (void)socket.sendAll(bytes, std::chrono::steady_clock::now() +
                                          std::chrono::seconds(1));
        },
        secret);
    ASSERT_FALSE(met);
    EXPECT_EQ(met.error().kind, ErrorKind::Absent);
  }
}

class SecretFile : public ::testing::Test {
protected:
  SecretFile() {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
  }
  ~SecretFile() override { std::filesystem::remove_all(folder); }
  void write(const std::string &text, mode_t mode = 0600) const {
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
  }
  const std::string folder = std::filesystem::temp_directory_path() /
                             ("mgpu-secret-" + std::to_string(getpid()));
  const std::string path = folder + "/secret";
};

TEST_F(SecretFile, IsMadeOnceForItsOwnerAlone) {
  const mode_t before = umask(0777);
  EXPECT_TRUE(makeSecret(path));
  umask(before);
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  const auto first = readSecret(path);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->size(), 32u);
  const auto again = makeSecret(path);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind, ErrorKind::Invalid);
  EXPECT_EQ(*readSecret(path), *first);
  ASSERT_TRUE(makeSecret(path + "2"));
  EXPECT_NE(*readSecret(path + "2"), *first);
  // A link that leads nowhere is something that is there.
  std::filesystem::create_symlink(folder + "/none", folder + "/link");
  EXPECT_FALSE(makeSecret(folder + "/link"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/none"));
  EXPECT_FALSE(makeSecret(folder + "/no/folder"));
}

TEST_F(SecretFile, IsRefusedWhereOthersReadItOrItIsShort) {
  const std::string good(32, 'a');
  write(good + "\n");
  EXPECT_TRUE(readSecret(path));
  for (mode_t mode : {0640, 0604, 0620, 0602, 0644, 0610}) {
    write(good, mode);
    const auto read = readSecret(path);
    ASSERT_FALSE(read) << mode;
    EXPECT_EQ(read.error().kind, ErrorKind::Invalid);
    EXPECT_NE(read.error().message.find("mgpu-tune secret FILE"),
              std::string::npos);
  }
  for (const std::string &wrong :
       {std::string(), std::string("\n"), std::string(30, 'a'), good + "a",
        "password " + good, good + "\n" + good, std::string(4096, 'z')}) {
    write(wrong);
    EXPECT_FALSE(readSecret(path)) << wrong;
  }
  EXPECT_FALSE(readSecret(folder));
  EXPECT_EQ(readSecret(folder + "/none").error().kind, ErrorKind::Usage);
  ASSERT_EQ(mkfifo((folder + "/pipe").c_str(), 0600), 0);
  EXPECT_FALSE(readSecret(folder + "/pipe"));
}

} // namespace
} // namespace mgpu::device

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "db/FileSystem.h"
#include "db/Trial.h"
#include "support/Random.h"
#include "support/Sha256.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace mgpu::db {
namespace {

TEST(Pairs, HaveOneTextForOneContent) {
  EXPECT_EQ(pairsText({{"tile", "4"}, {"block_x", "32"}}), "block_x=32,tile=4");
  EXPECT_EQ(pairsText({{"a,b", "c=d\\\n\xc3"}}), R"(a\,b=c\=d\\\x0a\xc3)");
  for (const char *text :
       {"tile=4,block_x=32", "a=1,a=2", "a", "a=1,", ",a=1", "a=1,,b=2",
        "a=b=c", "a=\\", "a=\\x1", "a=\\xzz", "a=\\q", "a=\x01", "a=\\x41"})
    EXPECT_FALSE(parsePairs(text)) << text;
  EXPECT_TRUE(parsePairs("")->empty());
}

std::string randomText(Random &random) {
  static constexpr char special[] = "ab=,\\\n x\xff\0";
  std::string text;
  for (uint64_t k = random.below(6); k > 0; --k)
    text += special[random.below(sizeof special)];
  return text;
}

TEST(Pairs, SurviveAnyBytes) {
  Random random(1);
  for (int round = 0; round < 2000; ++round) {
    Pairs pairs;
    for (uint64_t k = random.below(4); k > 0; --k)
      pairs[randomText(random) + "n"] = randomText(random);
    auto back = parsePairs(pairsText(pairs));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, pairs);
  }
}

TEST(TuningProblem, SurvivesAnyBytes) {
  Random random(2);
  std::map<std::string, TuningProblem> byKey;
  for (int round = 0; round < 2000; ++round) {
    TuningProblem problem;
    for (std::string *field :
         {&problem.program, &problem.shape, &problem.device,
          &problem.architecture, &problem.driver, &problem.environment,
          &problem.policy})
      *field = randomText(random);
    auto back = TuningProblem::parse(problem.text());
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, problem);
    auto [at, isNew] = byKey.emplace(problem.key(), problem);
    EXPECT_EQ(at->second, problem) << "one key for two problems";
  }
}

TEST(TuningProblem, KeysAreOfTheContent) {
  TuningProblem problem{"p", "n=1", "d", "sm_90", "r", "e", "m"};
  EXPECT_EQ(problem.text(), "program=p\nshape=n=1\ndevice=d\n"
                            "architecture=sm_90\ndriver=r\nenvironment=e\n"
                            "policy=m\n");
  EXPECT_EQ(problem.key(), Sha256().add(problem.text()).hex());
  TuningProblem other = problem;
  other.shape = "n=2";
  other.device = "f";
  EXPECT_NE(problem.key(), other.key());
  EXPECT_EQ(problem.familyKey(), other.familyKey());
  EXPECT_EQ(problem.settingKey(), other.settingKey());
  // What goes from one field to the next is another content.
  other.architecture = "sm_9";
  other.driver = "0r";
  EXPECT_NE(problem.familyKey(), other.familyKey());
  EXPECT_NE(problem.settingKey(), other.settingKey());
}

TEST(TuningProblem, RefusesOtherTexts) {
  std::string good = TuningProblem().text();
  EXPECT_TRUE(TuningProblem::parse(good));
  for (const std::string &text :
       {std::string(), good.substr(1), good.substr(0, good.size() - 1),
        good + "more=1\n", "program=\\x41\n" + good.substr(9)})
    EXPECT_FALSE(TuningProblem::parse(text)) << text;
}

TEST(FileSystem, NetworkFileSystemsAreKnown) {
  // NFS, SMB2, CIFS, Lustre, FUSE, 9p as linux/magic.h and statfs(2) have them;
  // f_type is signed on some machines.
  for (uint64_t type : {0x6969ul, 0xfe534d42ul, 0xff534d42ul, 0x0bd00bd0ul,
                        0x65735546ul, 0x01021997ul, 0xffffffffff534d42ul})
    EXPECT_TRUE(isNetworkFileSystem(type)) << std::hex << type;
  // ext4, xfs, btrfs, tmpfs, overlayfs, zfs.
  for (uint64_t type : {0xef53ul, 0x58465342ul, 0x9123683eul, 0x01021994ul,
                        0x794c7630ul, 0x2fc12fc1ul})
    EXPECT_FALSE(isNetworkFileSystem(type)) << std::hex << type;
  EXPECT_FALSE(liesOnNetwork("/no/such/folder/a.db"));
}

TEST(FileSystem, TheFileIsTheUsers) {
  for (const char *name :
       {"MGPU_DB", "XDG_STATE_HOME", "XDG_CACHE_HOME", "HOME"})
    ::unsetenv(name);
  auto none = databasePath("");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::Usage);
  ::setenv("HOME", "/home/a", 1);
  EXPECT_EQ(*databasePath(""), "/home/a/.local/state/mgpu/mgpu.db");
  ::setenv("XDG_STATE_HOME", "relative", 1);
  EXPECT_EQ(*databasePath(""), "/home/a/.local/state/mgpu/mgpu.db");
  ::setenv("XDG_STATE_HOME", "/state", 1);
  EXPECT_EQ(*databasePath(""), "/state/mgpu/mgpu.db");
  EXPECT_EQ(betterDatabasePath(""), "");
  ::setenv("MGPU_DB", "b.db", 1);
  EXPECT_EQ(*databasePath(""), "b.db");
  EXPECT_EQ(*databasePath("c.db"), "c.db");
  ::setenv("MGPU_DB_SITE", "s.db", 1);
  EXPECT_EQ(sitePath(""), "s.db");
  EXPECT_EQ(sitePath("t.db"), "t.db");
}

} // namespace
} // namespace mgpu::db

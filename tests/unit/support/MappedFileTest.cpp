// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/MappedFile.h"

#include "TestFiles.h"

#include <sys/mman.h>

using namespace mgpu;
using namespace mgpu::test;

namespace {

class Mapped : public FilesTest {
protected:
  std::shared_ptr<const MappedFile> map(const std::string &path) {
    auto file = MappedFile::open(path);
    EXPECT_TRUE(file) << file.error().message;
    return *file;
  }
  const std::string large = std::string(100'000, 'x');
};

TEST_F(Mapped, HasTheBytes) {
  const auto file = map(write("a", large)), empty = map(write("b", ""));
  EXPECT_EQ(file->bytes().size(), large.size());
  EXPECT_EQ(std::memcmp(file->bytes().data(), large.data(), large.size()), 0);
  EXPECT_FALSE(file->isChanged());
  EXPECT_TRUE(empty->bytes().empty());
  EXPECT_FALSE(MappedFile::open((folder / "none").string()));
  EXPECT_EQ(MappedFile::open(folder.string()).error().kind, ErrorKind::Usage);
}

TEST_F(Mapped, OfAFileThatIsCutReadsZeros) {
  for (int round = 0; round < 3; ++round) { // their places are used again
    const auto file = map(write("a", large)), other = map(write("b", large));
    ASSERT_EQ(::truncate(file->path().c_str(), 5), 0);
    EXPECT_EQ(file->bytes()[4], std::byte('x'));
    EXPECT_EQ(file->bytes()[90'000], std::byte(0));
    EXPECT_TRUE(file->isChanged());
    EXPECT_EQ(other->bytes()[90'000], std::byte('x'));
    EXPECT_FALSE(other->isChanged());
  }
}

TEST_F(Mapped, TellsOfWritesButNotOfAnotherFileOfItsName) {
  const auto file = map(write("a", large));
  std::filesystem::rename(write("b", "other"), file->path());
  EXPECT_FALSE(file->isChanged());
  const auto written = map(write("c", large));
  std::this_thread::sleep_for(std::chrono::milliseconds(20)); // a tick
  write("c", large);
  EXPECT_TRUE(written->isChanged());
}

TEST_F(Mapped, LeavesOtherFaultsToWhoeverHadThem) {
  const std::string path = write("a", large);
  auto touch = [&] {
    const auto file = map(write("b", large)); // installs the handler
    const Descriptor own(::open(path.c_str(), O_RDONLY));
    const auto *memory = static_cast<const volatile char *>(
        ::mmap(nullptr, large.size(), PROT_READ, MAP_SHARED, own.get(), 0));
    (void)::truncate(path.c_str(), 0);
    (void)memory[50'000];
  };
  EXPECT_DEATH(touch(), "");
  auto exits = [&] {
    std::signal(SIGBUS, [](int) { ::_exit(7); });
    touch();
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe"); // where nothing is mapped yet
  EXPECT_EXIT(exits(), ::testing::ExitedWithCode(7), "");
}

} // namespace

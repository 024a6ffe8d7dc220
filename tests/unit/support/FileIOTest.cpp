// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/FileIO.h"
#include "support/FileNames.h"

#include "TestFiles.h"

#include <csignal>
#include <sys/resource.h>

using namespace mgpu;
using namespace mgpu::test;

namespace {

class FileIO : public FilesTest {
protected:
  size_t numFiles() const {
    return size_t(std::distance(std::filesystem::directory_iterator(folder),
                                std::filesystem::directory_iterator()));
  }
};

TEST_F(FileIO, ReadsWithinTheLimit) {
  std::string path = write("a", "hello");
  Result<std::vector<std::byte>> data = readFile(path, 5);
  ASSERT_TRUE(data);
  EXPECT_EQ(data->size(), 5u);
  EXPECT_FALSE(readFile(path, 4));
  EXPECT_TRUE(readFile(write("b", "")));
}

TEST_F(FileIO, ReadsFilesOfUnknownSize) {
  Result<std::vector<std::byte>> data = readFile("/proc/self/status");
  ASSERT_TRUE(data);
  EXPECT_GT(data->size(), 0u);
}

TEST_F(FileIO, ReadsPipesToTheirEnd) {
  Pipe pipe(std::string(1000, 'x'), 1000);
  Result<std::vector<std::byte>> data = readFile(pipe.path());
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ(data->size(), 1000u * 1000);
  Pipe exact("hello", 1), over("hello", 1);
  EXPECT_TRUE(readFile(exact.path(), defaultFileLimit, 5));
  EXPECT_FALSE(readFile(over.path(), defaultFileLimit, 4));
}

TEST_F(FileIO, LeavesPipesThatNeverEnd) {
  Pipe pipe(std::string(4096, 'x'), 4096);
  Result<std::vector<std::byte>> data =
      readFile(pipe.path(), defaultFileLimit, 1 << 20);
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().message,
            "'" + pipe.path() +
                "' goes on after 1048576 bytes, where it should have ended: "
                "save what is wanted in a file first");
}

TEST_F(FileIO, RefusesDevices) {
  for (const char *path : {"/dev/zero", "/dev/urandom", "/dev/full"}) {
    Result<std::vector<std::byte>> data = readFile(path);
    ASSERT_FALSE(data);
    EXPECT_EQ(data.error().kind, ErrorKind::Usage);
    EXPECT_EQ(data.error().message,
              "cannot read '" + std::string(path) +
                  "': it is a device, which may never end: give a file or a "
                  "pipe");
    EXPECT_FALSE(readFileRange(path, 0, 1));
  }
  Result<std::vector<std::byte>> nothing = readFile("/dev/null");
  ASSERT_TRUE(nothing);
  EXPECT_TRUE(nothing->empty());
}

TEST_F(FileIO, ReadsRanges) {
  std::string path = write("a", "hello");
  Result<std::vector<std::byte>> data = readFileRange(path, 1, 3);
  ASSERT_TRUE(data);
  EXPECT_EQ(*data, std::vector<std::byte>(bytesOf("ell").begin(),
                                          bytesOf("ell").end()));
  EXPECT_FALSE(readFileRange(path, 3, 3));
  EXPECT_FALSE(readFileRange(path, 6, 0));
  EXPECT_FALSE(readFileRange(path, 1, ~uint64_t(0)));
  Pipe pipe("hello", 1);
  EXPECT_EQ(readFileRange(pipe.path(), 0, 1).error().message,
            "cannot read '" + pipe.path() +
                "' in parts: save it in a regular file first");
}

TEST_F(FileIO, ErrorsAreWords) {
  EXPECT_EQ(readFile(folder.string()).error().message,
            "cannot read '" + folder.string() + "': Is a directory");
  std::string path = (folder / "no" / "file").string();
  EXPECT_EQ(writeFileAtomic(path, "x").error().message,
            "cannot write '" + path + "': No such file or directory");
}

TEST_F(FileIO, ReplacesWholeFiles) {
  std::string path = write("a", "a longer old text");
  std::filesystem::permissions(path, std::filesystem::perms(0640));
  ASSERT_TRUE(writeFileAtomic(path, "new"));
  EXPECT_EQ(read(path), "new");
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms(0640));
  std::filesystem::create_symlink("a", folder / "link");
  ASSERT_TRUE(writeFileAtomic((folder / "link").string(), "newer"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(read(path), "newer");
  EXPECT_EQ(numFiles(), 2u);
}

TEST_F(FileIO, AnAbsentTargetOfALinkIsMade) {
  std::filesystem::create_directory(folder / "d");
  std::filesystem::create_symlink("d/b", folder / "a");
  std::filesystem::create_symlink("a", folder / "link");
  ASSERT_TRUE(writeFileAtomic((folder / "link").string(), "new"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "a"));
  EXPECT_EQ(read((folder / "d" / "b").string()), "new");
  std::filesystem::create_symlink("circle", folder / "circle");
  EXPECT_FALSE(writeFileAtomic((folder / "circle").string(), "x"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "circle"));
}

TEST_F(FileIO, NamesOfOneFile) {
  const std::string path = write("a", "x"), other = write("b", "x");
  std::filesystem::create_symlink("a", folder / "link");
  std::filesystem::create_hard_link(path, folder / "hard");
  std::filesystem::create_symlink("none", folder / "dangling");
  auto identity = [&](const char *name) {
    return fileIdentity((folder / name).string());
  };
  EXPECT_NE(identity("a"), "");
  EXPECT_EQ(identity("./a"), identity("a"));
  EXPECT_EQ(identity("link"), identity("a"));
  EXPECT_EQ(identity("hard"), identity("a"));
  EXPECT_NE(identity("b"), identity("a"));
  EXPECT_NE(identity("none"), "");
  EXPECT_EQ(identity("./none"), identity("none"));
  EXPECT_EQ(identity("dangling"), identity("none"));
  EXPECT_NE(identity("nine"), identity("none"));
  EXPECT_EQ(identity("nowhere/x"), "");
  EXPECT_EQ(fileIdentity("/dev/null"), "");
  EXPECT_EQ(fileIdentity(folder.string()), "");
}

TEST_F(FileIO, AFailedWriteLeavesNothing) {
  // The kernel's own full disk; then a target that cannot be replaced.
  Result<void> full = writeFileAtomic("/dev/full", "x");
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().message,
            "cannot write '/dev/full': No space left on device");
  std::filesystem::create_directory(folder / "d");
  EXPECT_FALSE(writeFileAtomic((folder / "d").string(), "x"));
  EXPECT_EQ(numFiles(), 1u);
}

TEST_F(FileIO, AWriteThatFailsHalfWayKeepsTheOldFile) {
  std::string path = write("a", "old");
  // A file size limit cuts a write short as a full disk does.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small{1000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Result<void> result = writeFileAtomic(path, std::string(5000, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message,
            "cannot write '" + path + "': File too large");
  EXPECT_EQ(read(path), "old");
  EXPECT_EQ(numFiles(), 1u);
}

} // namespace

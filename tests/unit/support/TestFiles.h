// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_SUPPORT_TESTFILES_H
#define MGPU_TESTS_UNIT_SUPPORT_TESTFILES_H

#include "support/Array.h"

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <thread>
#include <unistd.h>

namespace mgpu::test {

/// A folder of its own for each test, removed at its end.
class FilesTest : public ::testing::Test {
protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "mgpu-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string write(const std::string &name, std::string_view data) {
    std::string path = (folder / name).string();
    std::ofstream(path, std::ios::binary).write(data.data(), long(data.size()));
    return path;
  }
  static std::string read(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::filesystem::path folder;
};

/// A pipe into which another thread writes `text` `times` times, or until the
/// reader leaves.
class Pipe {
public:
  Pipe(std::string text, size_t times) {
    std::signal(SIGPIPE, SIG_IGN);
    if (::pipe2(ends, O_CLOEXEC) != 0)
      std::abort();
    writer = std::thread([fd = ends[1], text, times] {
      for (size_t k = 0; k < times; ++k)
        if (::write(fd, text.data(), text.size()) < 0)
          break;
      ::close(fd);
    });
  }
  ~Pipe() {
    ::close(ends[0]);
    writer.join();
  }
  std::string path() const { return "/dev/fd/" + std::to_string(ends[0]); }

private:
  int ends[2];
  std::thread writer;
};

inline std::span<const std::byte> bytesOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

template <typename T>
std::vector<T> valuesOf(const Array &array) {
  std::vector<T> values(array.bytes.size() / sizeof(T));
  std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return values;
}

template <typename T>
std::string_view rawText(const std::vector<T> &values) {
  return {reinterpret_cast<const char *>(values.data()),
          values.size() * sizeof(T)};
}

} // namespace mgpu::test

#endif // MGPU_TESTS_UNIT_SUPPORT_TESTFILES_H

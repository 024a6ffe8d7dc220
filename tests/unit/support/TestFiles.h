// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_SUPPORT_TESTFILES_H
#define MGPU_TESTS_UNIT_SUPPORT_TESTFILES_H

#include "support/Array.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

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

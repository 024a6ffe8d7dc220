// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/KernelCache.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace mgpu::kernels {

namespace fs = std::filesystem;

class KernelCacheTest : public testing::Test {
protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "kernels-XXXXXX";
    ASSERT_TRUE(mkdtemp(name.data()));
    folder = name;
  }
  void TearDown() override { fs::remove_all(folder); }

  static std::string key(char digit) { return std::string(64, digit); }
  static device::Blob blob(size_t bytes, int value) {
    return device::Blob(bytes, std::byte(value));
  }
  std::string folder;
};

TEST_F(KernelCacheTest, KeepsWhatAnotherProcessStored) {
  KernelCache first(folder + "/not/there/yet");
  EXPECT_FALSE(first.find(key('a')));
  first.store(key('a'), blob(100, 7));
  KernelCache second(folder + "/not/there/yet");
  EXPECT_EQ(second.find(key('a')), blob(100, 7));
  EXPECT_FALSE(second.find(key('b')));
}

TEST_F(KernelCacheTest, WhatIsNotWhatWasStoredIsAMiss) {
  KernelCache cache(folder);
  cache.store(key('a'), blob(100, 7));
  fs::copy_file(folder + "/" + key('a'), folder + "/" + key('b'));
  EXPECT_FALSE(cache.find(key('b'))) << "it was stored under another key";
  fs::permissions(folder + "/" + key('a'), fs::perms::others_write,
                  fs::perm_options::add);
  EXPECT_FALSE(cache.find(key('a'))) << "anybody may have written it";
  cache.store(key('a'), blob(100, 7));
  EXPECT_TRUE(cache.find(key('a')));
  std::fstream(folder + "/" + key('a')).seekp(80).put('x');
  EXPECT_FALSE(cache.find(key('a')));
  fs::resize_file(folder + "/" + key('a'), 10);
  EXPECT_FALSE(cache.find(key('a')));
}

TEST_F(KernelCacheTest, WhatWasNotUsedForLongestGoesFirst) {
  {
    KernelCache cache(folder, 1000);
    for (char digit : {'a', 'b', 'c'})
      cache.store(key(digit), blob(200, digit));
  }
  const auto longAgo = fs::file_time_type::clock::now() - std::chrono::hours(9);
  for (char digit : {'a', 'b', 'c'})
    fs::last_write_time(folder + "/" + key(digit), longAgo);
  KernelCache cache(folder, 1000);
  EXPECT_TRUE(cache.find(key('a'))) << "which is a use of it";
  cache.store(key('d'), blob(400, 4));
  EXPECT_TRUE(cache.find(key('a')));
  EXPECT_TRUE(cache.find(key('d')));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 3)
      << "one of b and c had to go";
}

} // namespace mgpu::kernels

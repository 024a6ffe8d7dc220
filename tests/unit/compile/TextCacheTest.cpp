// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/KernelCache.h"

#include "support/FileIO.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace mgpu::kernels {
namespace {

CudaText textOf(const std::string &name) {
  KernelSpace space;
  space.target = KernelTarget::Cuda;
  space.block = {32, 4, 1};
  space.maxGrid = {7, 8, 9};
  space.reshapable = true;
  space.reason = "a reason";
  space.sharedBytes = Formula::tunable(0) + 1;
  space.sharedIsDynamic = true;
  space.offerDefaults("why");
  for (KernelAxis &axis : space.axes)
    axis.values.push_back(99);
  space.addTunable({"TILE", {16, 32}});
  space.require("a rule", 3, Relation::Equal, -1, "a reason");
  CudaText text;
  text.name = name;
  text.image.entry = name + "_entry";
  text.image.blob = std::string("a\0b", 3) + name;
  text.reason = "because";
  text.image.sourceBlock = {32, 4, 1};
  text.image.block = {64, 1, 1};
  text.image.covers = {128, 4, 1};
  text.reshapable = true;
  text.image.takesPart = false;
  text.image.dynamicSharedBytes = 48;
  text.image.awaits = true;
  text.image.parameterBytes = {8, 4, 2};
  text.image.tensorMaps = {
      {2, 64, ElementType::BF16, {64, 32, 1}, {128, 4096}, {64, 8, 1}}};
  text.image.product =
      MatrixProduct{ElementType::F16,
                    ElementType::F32,
                    2,
                    3,
                    4,
                    5,
                    {{{0, 1, 2, 3}, {1, 4, 5, 6}, {2, 7, 8, 9}}},
                    true,
                    true};
  text.image.arch = "sm_90a";
  text.space = space;
  text.form = "tiles";
  text.leastArch = 80;
  text.disabled = "not yet";
  CudaText other = text;
  other.name += "_other";
  other.space.reset();
  text.candidates = {other};
  return text;
}

planner::KernelSpec kernelOf(const std::string &name,
                             const std::string &source = "module {}") {
  planner::KernelSpec kernel;
  kernel.name = name;
  kernel.source = planner::MlirKernel{source};
  kernel.location = "p.mlir:3:4";
  kernel.block = {32, 4, 1};
  return kernel;
}

const std::vector<planner::LaunchFacts> someFacts{{{7, 8, 9}, 16, {true}},
                                                  {{1, 1, 1}}};

TEST(TextCache, KeepsAllOfAText) {
  std::vector<CudaText> texts{textOf("a"), textOf("b")};
  texts[1].space.reset();
  std::string key(64, '0');
  EXPECT_EQ(unpackTexts(key, packTexts(key, texts)), texts);
}

TEST(TextCache, EntriesCutShortOrGarbledAreMisses) {
  std::string key(64, '0');
  device::Blob blob = packTexts(key, std::vector<CudaText>{textOf("a")});
  for (size_t bytes = 0; bytes < blob.size(); ++bytes)
    EXPECT_FALSE(unpackTexts(
        key, device::Blob(blob.begin(), blob.begin() + ptrdiff_t(bytes))))
        << bytes;
  device::Blob longer = blob;
  longer.push_back({});
  EXPECT_FALSE(unpackTexts(key, longer));
  for (size_t at = 0; at < blob.size(); ++at) { // any, but no crash
    device::Blob other = blob;
    other[at] ^= std::byte(0xff);
    (void)unpackTexts(key, other);
  }
  // Lacks a parameter: what its functions take for granted.
  CudaText part = textOf("a");
  part.space->axes.clear();
  EXPECT_FALSE(unpackTexts(key, packTexts(key, std::vector<CudaText>{part})));
}

TEST(TextCache, AnEntryUnderAnothersKeyIsAMiss) {
  device::MemoryBlobCache blobs;
  TextCache cache(&blobs, {"build", ""});
  std::vector<planner::KernelSpec> a{kernelOf("a"), kernelOf("b")},
      b{kernelOf("b"), kernelOf("a")};
  std::vector<CudaText> texts{textOf("a"), textOf("b")};
  std::string keyA = cache.keyOf(a, someFacts),
              keyB = cache.keyOf(b, someFacts);
  ASSERT_NE(keyA, keyB);
  cache.store(keyA, a, someFacts, texts);
  EXPECT_EQ(cache.find(keyA, a), texts);
  EXPECT_FALSE(cache.find(keyB, b));
  blobs.store(keyB, *blobs.find(keyA));
  EXPECT_FALSE(cache.find(keyB, b));
  // Fewer texts than kernels.
  blobs.store(keyB, packTexts(keyB, std::vector<CudaText>{textOf("b")}));
  EXPECT_FALSE(cache.find(keyB, b));
}

TEST(TextCache, TheKeyIsOfAllThatDecidesATextAndOfNothingElse) {
  device::MemoryBlobCache blobs;
  auto keyOf = [&](TextMaker maker, planner::KernelSpec kernel,
                   planner::LaunchFacts facts) {
    return TextCache(&blobs, maker)
        .keyOf(std::vector<planner::KernelSpec>{kernel},
               std::vector<planner::LaunchFacts>{facts});
  };
  TextMaker maker{"build", "options"};
  planner::KernelSpec kernel = kernelOf("a");
  std::vector<std::string> keys{keyOf(maker, kernel, {{1, 1, 1}}),
                                keyOf({"b", "options"}, kernel, {{1, 1, 1}}),
                                keyOf({"build", ""}, kernel, {{1, 1, 1}}),
                                keyOf(maker, kernel, {{1, 1, 2}}),
                                keyOf(maker, kernel, {{1, 1, 1}, 16}),
                                keyOf(maker, kernel, {{1, 1, 1}, 1, {true}}),
                                keyOf(maker, kernel, {{1, 1, 1}, 1, {false}})};
  auto add = [&](auto change) {
    planner::KernelSpec other = kernel;
    change(other);
    keys.push_back(keyOf(maker, other, {{1, 1, 1}}));
  };
  add([](auto &k) { k.name = "other"; });
  add([](auto &k) { k.source = planner::MlirKernel{"another"}; });
  planner::CudaFile file{.text = "text",
                         .file = "k.cu",
                         .entry = "k",
                         .parameters = {},
                         .tunables = {},
                         .reference = ""};
  add([&](auto &k) { k.source = file; });
  file.text = "other";
  add([&](auto &k) { k.source = file; });
  file.tunables = {{"TILE", {8}}};
  add([&](auto &k) { k.source = file; });
  add([](auto &k) { k.location = "q.mlir:3:4"; });
  add([](auto &k) { k.block = {4, 32, 1}; });
  for (size_t k = 0; k < keys.size(); ++k) {
    EXPECT_EQ(keys[k].size(), 64u);
    for (size_t other = 0; other < k; ++other)
      EXPECT_NE(keys[k], keys[other]) << k << " " << other;
  }
  kernel.numArguments = 9;
  EXPECT_EQ(keys[0], keyOf(maker, kernel, {{1, 1, 1}}));
}

TEST(TextCache, NothingIsKeptWhereTheEmitterIsNotKnown) {
  device::MemoryBlobCache blobs;
  std::vector<planner::KernelSpec> kernels{kernelOf("a"), kernelOf("b")};
  EXPECT_EQ(TextCache(&blobs, {"", ""}).keyOf(kernels, someFacts), "");
  TextCache none(nullptr, {"build", ""});
  EXPECT_EQ(none.keyOf(kernels, someFacts), "");
  EXPECT_FALSE(none.find(std::string(64, '0'), kernels));
  none.store(std::string(64, '0'), kernels, someFacts,
             std::vector<CudaText>{textOf("a"), textOf("b")});
}

/// A file that a location of a kernel names.
class NamedFile : public testing::Test {
protected:
  void SetUp() override { ASSERT_TRUE(writeFileAtomic(path, "%name = 1")); }
  void TearDown() override { ::unlink(path.c_str()); }

  std::string path =
      testing::TempDir() + "mgpu-text-" + std::to_string(::getpid()) + ".mlir";
  std::vector<planner::KernelSpec> kernels{
      kernelOf("a", "x loc(\"" + path + "\":1:2)\n")};
  std::vector<planner::LaunchFacts> facts{{{1, 1, 1}}};
  std::vector<CudaText> texts{textOf("a")};
  device::MemoryBlobCache blobs;
};

TEST_F(NamedFile, IsPartOfTheKey) {
  auto key = [&] {
    return TextCache(&blobs, {"build", ""}).keyOf(kernels, facts);
  };
  std::string first = key();
  EXPECT_EQ(first, key());
  ASSERT_TRUE(writeFileAtomic(path, "%other = 1"));
  std::string second = key();
  EXPECT_NE(first, second);
  ASSERT_EQ(::unlink(path.c_str()), 0);
  std::string absent = key();
  EXPECT_NE(absent, first);
  EXPECT_NE(absent, second);
  kernels[0].source = planner::MlirKernel{"x loc(\"/dev/zero\":1:2)"};
  EXPECT_EQ(key(), "") << "not a file that can be read twice";
  kernels[0].source = planner::MlirKernel{"x loc(\"a\\22b\":1:2)"};
  EXPECT_EQ(key(), "") << "written with escapes";
}

TEST_F(NamedFile, ThatChangedMeanwhileKeepsNothing) {
  TextCache cache(&blobs, {"build", ""});
  std::string key = cache.keyOf(kernels, facts);
  ASSERT_TRUE(writeFileAtomic(path, "%other = 1"));
  cache.store(key, kernels, facts, texts);
  EXPECT_FALSE(cache.find(key, kernels));
  ASSERT_TRUE(writeFileAtomic(path, "%name = 1"));
  cache.store(key, kernels, facts, texts);
  EXPECT_EQ(cache.find(key, kernels), texts);
}

TEST(FilesNamedIn, FindsFilesOfLocationsAlone) {
  EXPECT_EQ(filesNamedIn("a = \"no \\\" file\" : loc(\"x\"(\"b.mlir\":3:4)) "
                         "loc(\"a.mlir\":1:2 to 2:3) loc(\"b.mlir\":9:9)"),
            (std::vector<std::string>{"a.mlir", "b.mlir"}));
  EXPECT_EQ(filesNamedIn("module {}"), std::vector<std::string>());
  EXPECT_FALSE(filesNamedIn("loc(\"open"));
  EXPECT_FALSE(filesNamedIn("loc(\"a\\5C.mlir\":1:1)"));
}

} // namespace
} // namespace mgpu::kernels

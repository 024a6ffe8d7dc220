// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/space/TransformSpace.h"

#include "planner/dag/ContentHash.h"
#include "tests/unit/tuner/ReductionProgram.h"

#include <set>

namespace mgpu::tuner {
namespace {

using K = planner::TransformKind;

std::set<std::string> textsOf(const std::vector<TransformList> &lists) {
  std::set<std::string> texts;
  for (const TransformList &list : lists)
    texts.insert(toText(list));
  return texts;
}

TEST(TransformSpace, ListsAreThoseThatChangeSomething) {
  auto lists = transformLists(makeReductions(false));
  ASSERT_TRUE(lists) << lists.error().message;
  EXPECT_TRUE(lists->front().empty());
  // Nothing to copy twice, every rank reads all of a sum, and no kernel says
  // how it could be cut.
  EXPECT_EQ(textsOf(*lists), (std::set<std::string>{"", "bucket=on", "split=on",
                                                    "bucket=on split=on"}));
}

TEST(TransformSpace, EveryTransformOfAListHasWorkWhereItStands) {
  planner::Dag dag = makeReductions(true);
  auto lists = transformLists(dag);
  ASSERT_TRUE(lists) << lists.error().message;
  const std::set<std::string> texts = textsOf(*lists);
  // The sums share no kernel, so that each has a number of its own.
  for (const char *some :
       {"chunks.0=2 chunks.1=1", "chunks.0=1 chunks.1=2",
        "chunks.0=2 chunks.1=2", "chunks.0=2 chunks.1=1 split=on"})
    EXPECT_TRUE(texts.contains(some)) << some;
  // No part of a kernel makes a part of the bucket; and two blocks are not four
  // parts.
  for (const std::string &text : texts) {
    EXPECT_FALSE(text.starts_with("bucket=on chunks")) << text;
    EXPECT_EQ(text.find("=4"), std::string::npos) << text;
  }
  std::set<std::string> programs;
  for (const TransformList &list : *lists) {
    auto changed = tuner::transformed(dag, list);
    ASSERT_TRUE(changed) << changed.error().message;
    EXPECT_TRUE(changed->check());
    programs.insert(planner::contentHash(*changed));
  }
  EXPECT_EQ(programs.size(), lists->size());

  auto refused = tuner::transformed(dag, {K::Bucket, K::Chunk2});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Invalid);
}

TEST(TransformSpace, ALargeProgramKeepsWhatItIs) {
  planner::Dag dag = makeReductions(false);
  planner::Buffer constant;
  constant.name = "large";
  constant.device = DeviceId::host();
  constant.role = planner::BufferRole::Constant;
  constant.sizeBytes = mostTransformedConstants + 1;
  constant.contents.resize(constant.sizeBytes);
  dag.buffers.push_back(std::move(constant));
  auto lists = transformLists(dag);
  ASSERT_TRUE(lists);
  EXPECT_EQ(lists->size(), 1u);
}

TEST(TransformSpace, ListsGoThroughPairs) {
  for (const TransformList &list :
       {TransformList{}, TransformList{K::Chunk8},
        TransformList{{K::Chunk, {1, 64}}},
        TransformList{
            K::Copies, K::Scatter, K::Bucket, {K::Chunk, {4}}, K::Split}}) {
    db::Pairs pairs{{"streams", "4"}};
    addPairs(list, pairs);
    auto read = transformsFrom(pairs);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, list);
  }
  EXPECT_EQ(toText({K::Copies, {K::Chunk, {4, 1}}}),
            "copies=on chunks.0=4 chunks.1=1");
  for (auto [name, value] :
       {std::pair("chunks", "3"), std::pair("chunks", "1"),
        std::pair("chunks.0", "1"), std::pair("chunks.0", "65"),
        std::pair("chunks.0", "two"), std::pair("bucket", "off"),
        std::pair("split", "")})
    EXPECT_FALSE(transformsFrom({{name, value}})) << name << value;
}

TEST(TransformSpace, ParametersAreThoseThatDiffer) {
  const TransformList both = {K::Bucket, {K::Chunk, {8}}};
  TransformChoices choices(
      {{}, {K::Bucket}, {{K::Chunk, {2, 1}}}, {{K::Chunk, {8, 4}}}, both});
  const std::vector<Parameter> &described = choices.described();
  ASSERT_EQ(described.size(), 3u);
  EXPECT_EQ(described[0].name, "bucket");
  EXPECT_EQ(described[0].labels, (std::vector<std::string>{"off", "on"}));
  EXPECT_EQ(described[1].name, "chunks.0");
  EXPECT_EQ(described[1].values, (std::vector<double>{1, 2, 8}));
  EXPECT_TRUE(described[1].isOrdered());
  EXPECT_EQ(described[2].name, "chunks.1");
  EXPECT_EQ(described[2].values, (std::vector<double>{1, 4}));
  const double good[] = {1, 8, 1}, bad[] = {1, 8, 4};
  ASSERT_TRUE(choices.find(good));
  EXPECT_EQ(*choices.find(good), both);
  EXPECT_FALSE(choices.find(bad));
  EXPECT_EQ(choices.valuesOf(both), (std::vector<double>{1, 8, 1}));
  EXPECT_FALSE(choices.valuesOf({K::Bucket, {K::Chunk, {8, 1}}}));
  EXPECT_FALSE(choices.valuesOf({K::Chunk8}));
  EXPECT_TRUE(choices.begins(std::span(good, 2)));
  EXPECT_FALSE(choices.begins(std::span(bad, 3)));
}

TEST(TransformSpace, OfManyGroupsSomeShareANumber) {
  planner::Dag dag = makeReductions(true, 20); // 2^20 combinations
  ASSERT_TRUE(dag.check());
  auto lists = transformLists(dag);
  ASSERT_TRUE(lists) << lists.error().message;
  EXPECT_GT(lists->size(), 32u);
  EXPECT_LE(lists->size(), 4 * 64u); // bucket and split, on and off
  size_t all = 0, one = 0;
  for (const TransformList &list : *lists) {
    ASSERT_TRUE(tuner::transformed(dag, list)) << toText(list);
    for (const planner::Transform &transform : list) {
      if (transform.kind != K::Chunk)
        continue;
      ASSERT_EQ(transform.counts.size(), 20u);
      auto cut = std::count_if(transform.counts.begin(), transform.counts.end(),
                               [](uint32_t count) { return count > 1; });
      all += cut == 20;
      one += cut == 1;
    }
  }
  EXPECT_GT(all, 0u);
  EXPECT_GT(one, 0u);
}

} // namespace
} // namespace mgpu::tuner

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/session/TransformSpace.h"

#include "tests/unit/tuner/ReductionProgram.h"
#include "tuner/session/Keys.h"

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
  EXPECT_TRUE(texts.contains("chunks=2"));
  EXPECT_TRUE(texts.contains("chunks=2 split=on"));
  // Of the bucket neither part is made by a part of a kernel; and two blocks
  // are not four parts.
  EXPECT_FALSE(texts.contains("bucket=on chunks=2"));
  EXPECT_FALSE(texts.contains("chunks=4"));
  std::set<std::string> programs;
  for (const TransformList &list : *lists) {
    auto changed = transformed(dag, list);
    ASSERT_TRUE(changed) << changed.error().message;
    EXPECT_TRUE(changed->check());
    programs.insert(contentHash(*changed));
  }
  EXPECT_EQ(programs.size(), lists->size());

  auto refused = transformed(dag, {K::Bucket, K::Chunk2});
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
        TransformList{K::Copies, K::Scatter, K::Bucket, K::Chunk4, K::Split}}) {
    db::Pairs pairs{{"streams", "4"}};
    addPairs(list, pairs);
    auto read = transformsFrom(pairs);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, list);
  }
  EXPECT_EQ(toText({K::Copies, K::Chunk4}), "copies=on chunks=4");
  for (auto [name, value] :
       {std::pair("chunks", "3"), std::pair("chunks", "1"),
        std::pair("bucket", "off"), std::pair("split", "")})
    EXPECT_FALSE(transformsFrom({{name, value}})) << name << value;
}

TEST(TransformSpace, ParametersAreThoseThatDiffer) {
  TransformChoices choices = TransformChoices::of(
      {{}, {K::Bucket}, {K::Chunk2}, {K::Chunk8}, {K::Bucket, K::Chunk2}});
  ASSERT_EQ(choices.described.size(), 2u);
  EXPECT_EQ(choices.described[0].name, "bucket");
  EXPECT_EQ(choices.described[0].labels,
            (std::vector<std::string>{"off", "on"}));
  EXPECT_EQ(choices.described[1].name, "chunks");
  EXPECT_EQ(choices.described[1].values, (std::vector<double>{1, 2, 8}));
  EXPECT_TRUE(choices.described[1].isOrdered());
  const double good[] = {1, 2}, bad[] = {1, 8};
  ASSERT_TRUE(choices.find(good));
  EXPECT_EQ(*choices.find(good), (TransformList{K::Bucket, K::Chunk2}));
  EXPECT_FALSE(choices.find(bad));
}

} // namespace
} // namespace mgpu::tuner

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/record/MeasuredTimes.h"

#include "db/Database.h"
#include "tests/unit/db/TempFolder.h"
#include "tests/unit/tuner/ReductionProgram.h"

#include <algorithm>

namespace mgpu::tuner {
namespace {

using planner::Dag;
using planner::NodeId;

/// The reductions, and what keys of theirs need.
struct MeasuredSetting {
  db::TempFolder folder;
  std::string path = folder / "m.db";
  Dag dag = makeReductions(false);
  std::vector<KernelObject> compiled = {
      std::make_shared<Bytes>(kernelWithFault(0))};
  bench::Environment environment = bench::readEnvironment();
  ProgramConfig config = [] {
    ProgramConfig made;
    made.kernels.resize(1);
    return made;
  }();

  KeyInput keys() const { return keysOf(dag); }
  KeyInput keysOf(const Dag &of) const {
    return {of, compiled, environment, "test", 2, false};
  }
  db::TuningStore open() { return std::move(*db::TuningStore::open(path)); }

  /// Node k takes k + 1 us, but for the last, which was not timed.
  void store() {
    std::vector<std::vector<double>> samples(dag.nodes.size());
    for (size_t k = 0; k + 1 < samples.size(); ++k)
      samples[k] = {double(k + 1), double(k + 1), double(k + 1)};
    auto file = open();
    auto stored = storeNodeTimes(keys(), config, samples, file);
    EXPECT_TRUE(stored) << stored.error().message;
  }
  NodeTimes read(const KeyInput &input, const ProgramConfig &with) {
    auto file = open();
    auto times = readNodeTimes(input, with, file);
    EXPECT_TRUE(times) << times.error().message;
    return times.value_or(NodeTimes());
  }
  uint32_t find(const std::string &name) const {
    for (uint32_t i = 0; i < dag.nodes.size(); ++i)
      if (dag.nodes[i].name == name)
        return i;
    ADD_FAILURE() << name;
    return 0;
  }
};

size_t count(const NodeTimes &times) {
  return size_t(std::count_if(times.begin(), times.end(),
                              [](const auto &us) { return us.has_value(); }));
}

TEST(MeasuredTimes, AreReadBackForAllThatDoTheSame) {
  MeasuredSetting setting;
  setting.store();
  const NodeTimes times = setting.read(setting.keys(), setting.config);
  ASSERT_EQ(times.size(), setting.dag.nodes.size());
  EXPECT_EQ(count(times), times.size()); // the last does what others do

  // Both all_reduces are the same work: the median of both.
  const uint32_t a = setting.find("reduce0"), b = setting.find("reduce1");
  EXPECT_EQ(times[a], times[b]);
  EXPECT_NEAR(*times[a], (a + 1 + b + 1) / 2.0, 1e-12);
  // axpy0_1 and axpy1_0 have the scalar 3; axpy0_0 is alone with its 2.
  const uint32_t alone = setting.find("axpy0_0");
  EXPECT_EQ(times[alone], double(alone + 1));
  EXPECT_EQ(times[setting.find("axpy0_1")], times[setting.find("axpy1_0")]);
  EXPECT_NE(times[setting.find("axpy0_1")], times[alone]);
}

TEST(MeasuredTimes, TheNewestCounts) {
  MeasuredSetting setting;
  setting.store();
  const uint32_t node = setting.find("axpy0_0");
  std::vector<std::vector<double>> samples(setting.dag.nodes.size());
  samples[node] = {100};
  auto file = setting.open();
  ASSERT_TRUE(storeNodeTimes(setting.keys(), setting.config, samples, file));
  const NodeTimes times = setting.read(setting.keys(), setting.config);
  EXPECT_EQ(times[node], 100);
  EXPECT_LT(*times[node + 1], 100);
  // What is below the clock is not a finite time.
  samples[node] = {0, 0, 0};
  ASSERT_TRUE(storeNodeTimes(setting.keys(), setting.config, samples, file));
  EXPECT_EQ(setting.read(setting.keys(), setting.config)[node], 100);
}

TEST(MeasuredTimes, OtherWorkHasNone) {
  MeasuredSetting setting;
  setting.store();
  const size_t all = setting.dag.nodes.size(), kernels = 4;
  ProgramConfig other = setting.config;
  other.threads = 2; // other threads
  EXPECT_EQ(count(setting.read(setting.keys(), other)), 0u);
  other = setting.config; // built in another way
  other.kernels[0][kernels::KernelParameter::Unroll] = 4;
  EXPECT_EQ(count(setting.read(setting.keys(), other)), all - kernels);

  Dag changed = setting.dag; // another grid
  std::get<planner::KernelCall>(changed.nodes[setting.find("axpy0_0")].work)
      .grid.x = 1;
  EXPECT_EQ(count(setting.read(setting.keysOf(changed), setting.config)),
            all - 1);
  changed = setting.dag; // another type
  std::get<planner::CollectiveCall>(changed.nodes[setting.find("reduce1")].work)
      .elementType = ElementType::I32;
  EXPECT_EQ(count(setting.read(setting.keysOf(changed), setting.config)),
            all - 1);
  changed = setting.dag; // another shape: half of the buffer
  auto &copy =
      std::get<planner::CopyCall>(changed.nodes[setting.find("up_x0_0")].work);
  copy.sourceBox = copy.destinationBox = {0, {4}, {4}, 4};
  NodeTimes times = setting.read(setting.keysOf(changed), setting.config);
  EXPECT_EQ(count(times), all - 1);
  EXPECT_FALSE(times[setting.find("up_x0_0")]);

  KeyInput elsewhere = setting.keys(); // another machine
  bench::Environment machine = setting.environment;
  machine.cpu += " II";
  times =
      setting.read({setting.dag, setting.compiled, machine, "test", 2, false},
                   setting.config);
  EXPECT_EQ(count(times), 0u);
  // Another kernel under the same name.
  std::vector<KernelObject> compiled = {
      std::make_shared<Bytes>(kernelWithFault(4))};
  times = setting.read(
      {setting.dag, compiled, setting.environment, "test", 2, false},
      setting.config);
  EXPECT_EQ(count(times), all - kernels);
}

TEST(MeasuredTimes, WhatATransformLeavesIsFound) {
  MeasuredSetting setting;
  setting.store();
  auto changed =
      tuner::transformed(setting.dag, {planner::TransformKind::Bucket});
  ASSERT_TRUE(changed);
  const NodeTimes times =
      setting.read(setting.keysOf(*changed), setting.config);
  EXPECT_EQ(count(times), changed->nodes.size() - 1); // all but the bucket
  const planner::Machine model = planner::hostMachine();
  const planner::Machine measured = model.withTimes(times);
  EXPECT_EQ(measured.numMeasured(), changed->nodes.size() - 1);
  EXPECT_EQ(measured.name(), "measured: 14 of 15 nodes; host roofline");
  for (uint32_t k = 0; k < times.size(); ++k)
    EXPECT_EQ(measured.durationUs(*changed, {k}),
              times[k] ? *times[k] : model.durationUs(*changed, {k}));
}

TEST(MeasuredTimes, ADamagedRowCostsItsTime) {
  MeasuredSetting setting;
  setting.store();
  // Behind the store's back: a figure of the first row, then of all.
  auto spoil = [&](const std::string &which) {
    auto file = db::Database::open(setting.path);
    ASSERT_TRUE(file);
    EXPECT_TRUE(file->execute(
        "UPDATE trials SET median_us = median_us * 2 WHERE " + which));
  };
  const size_t before = count(setting.read(setting.keys(), setting.config));
  spoil("id = (SELECT min(id) FROM trials)");
  const size_t after = count(setting.read(setting.keys(), setting.config));
  EXPECT_LT(after, before);
  EXPECT_GT(after, 0u);
  spoil("id > (SELECT min(id) FROM trials)");
  EXPECT_EQ(count(setting.read(setting.keys(), setting.config)), 0u);
}

TEST(MeasuredTimes, ThreadsAreThoseChosenLast) {
  MeasuredSetting setting;
  auto file = setting.open();
  auto threads = readThreads(setting.keys(), file);
  ASSERT_TRUE(threads);
  EXPECT_FALSE(*threads);
  bench::Summary us = bench::summarize({5, 6, 7});
  for (uint32_t count : {3, 2})
    ASSERT_TRUE(storeThreads(setting.keys(), count, us, file));
  threads = readThreads(setting.keys(), file);
  ASSERT_TRUE(threads);
  EXPECT_EQ(*threads, 2u);
  setting.dag.nodes[0].devices = {{1}};
  threads = readThreads(setting.keys(), file);
  ASSERT_TRUE(threads);
  EXPECT_FALSE(*threads);
}

} // namespace
} // namespace mgpu::tuner

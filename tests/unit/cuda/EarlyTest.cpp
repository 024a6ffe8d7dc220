// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Kernels that begin before those they follow have ended, and wait for them.

#include "FakeTarget.h"

#include <gtest/gtest.h>

namespace {

using namespace mgpu;
using namespace mgpu::device;
using namespace mgpu::fake;

/// out[0] = 3 * in[0] + 1, after what it follows where it waits.
FakeKernel steppingKernel(bool waits) {
  FakeKernel kernel;
  kernel.parameterSizes = {8, 8};
  kernel.run = [waits](void **parameters, const unsigned *, const unsigned *) {
    if (waits)
      FakeCuda::instance().awaitGrids();
    **static_cast<uint64_t **>(parameters[0]) =
        3 * **static_cast<uint64_t **>(parameters[1]) + 1;
  };
  return kernel;
}

/// A program of launches from word to word of a GPU's memory.
struct Words {
  static constexpr size_t count = 16;

  explicit Words(uint64_t seed = 0, int major = 9) : fake(&freshMachine(seed)) {
    fake->major = major;
    fake->kernels["waits"] = steppingKernel(true);
    fake->kernels["hurries"] = steppingKernel(false);
    CudaOptions options = fakeOptions(1);
    options.compile = [](const std::string &source, const std::string &name,
                         const std::string &) {
      return compileForFake(source, name, "sm_90");
    };
    driver = *openFake(options);
    waits = load("waits", true);
    whole = load("waits", false);
    hurries = load("hurries", true); // it says that it waits
    memory = *driver->allocate({0}, count * 8);
    graph = driver->createGraph();
  }

  KernelHandle load(const char *entry, bool awaits) {
    kernels::KernelImage object;
    object.entry = entry;
    object.arch = "sm_90";
    object.takesPart = false;
    object.sourceBlock = object.block = object.covers = {1, 1, 1};
    object.awaits = awaits;
    object.setBytes(fakeCubin({"waits", "hurries"}));
    return *driver->loadKernel(entry, kernels::encodeImage(object));
  }
  uint64_t *word(size_t k) { return reinterpret_cast<uint64_t *>(memory) + k; }
  GraphNodeId step(KernelHandle kernel, size_t to, size_t from,
                   std::vector<GraphNodeId> after, bool mayBeginEarly = true,
                   Dim3 grid = {1, 1, 1}) {
    KernelNodeParams params{
        "step",
        {0},
        kernel,
        grid,
        {uint64_t(uintptr_t(word(to))), uint64_t(uintptr_t(word(from)))},
        std::nullopt,
        mayBeginEarly};
    auto made = graph->addKernel(params, after);
    EXPECT_TRUE(made) << made.error().message;
    return made.value_or(GraphNodeId{});
  }
  /// The programmatic edges of the youngest graph; what else they are must be
  /// right.
  size_t numEarly() const {
    size_t found = 0;
    for (const auto &node : fake->graphs.youngest()->nodes)
      for (const CUgraphEdgeData &edge : node->edgeData) {
        EXPECT_EQ(edge.type, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
        EXPECT_EQ(edge.from_port, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
        EXPECT_EQ(edge.to_port, 0);
        ++found;
      }
    return found;
  }
  size_t build() {
    auto made = graph->instantiate();
    EXPECT_TRUE(made) << made.error().message;
    exec = made ? std::move(*made) : nullptr;
    return numEarly();
  }
  void close() {
    exec.reset();
    graph.reset();
    driver.reset();
    EXPECT_EQ(fake->violations, std::vector<std::string>());
    EXPECT_EQ(fake->leaks(), std::vector<std::string>());
  }

  FakeCuda *fake;
  std::unique_ptr<Driver> driver;
  KernelHandle waits, whole, hurries;
  std::byte *memory = nullptr;
  std::unique_ptr<GraphDriver> graph;
  std::unique_ptr<GraphExec> exec;
};

/// What a chain of kernels leaves in its last word; `at` is of another kind.
uint64_t chainOf(size_t length, uint64_t seed,
                 KernelHandle Words::*at = &Words::waits,
                 size_t other = SIZE_MAX) {
  Words words(seed);
  std::vector<GraphNodeId> last;
  for (size_t k = 0; k + 1 < length; ++k)
    last = {words.step(k == other ? words.*at : words.waits, k + 1, k, last)};
  EXPECT_EQ(words.build(), length - 2);
  *words.word(0) = 1;
  Result<void> ok = words.exec->launch();
  EXPECT_TRUE(ok) << ok.error().message;
  uint64_t result = *words.word(length - 1);
  words.close();
  return result;
}

uint64_t expectedOf(size_t length) {
  uint64_t value = 1;
  for (size_t k = 0; k + 1 < length; ++k)
    value = 3 * value + 1;
  return value;
}

TEST(Early, AChainOfThemComputesTheSame) {
  size_t began = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    ASSERT_EQ(chainOf(Words::count, seed), expectedOf(Words::count)) << seed;
    began += FakeCuda::instance().earlyBegins;
  }
  EXPECT_GT(began, 60u) << "hardly one began early";
}

/// The driver that is not there finds a kernel that says it waits and does not,
/// and through it that what it should have waited for had not ended either.
TEST(Early, OneThatDoesNotWaitIsFound) {
  for (size_t other : {size_t(1), size_t(2)}) {
    size_t wrong = 0;
    for (uint64_t seed = 0; seed < 30; ++seed)
      wrong += chainOf(4, seed, &Words::hurries, other) != expectedOf(4);
    EXPECT_GT(wrong, 5u) << "as step " << other;
    EXPECT_LT(wrong, 30u) << "as step " << other;
  }
}

TEST(Early, OnlyAKernelThatWaitsAfterOneOther) {
  Words words;
  GraphNodeId first = words.step(words.waits, 1, 0, {});
  GraphNodeId early = words.step(words.waits, 2, 1, {first}); // the only one
  words.step(words.whole, 3, 2, {early});
  GraphNodeId other = words.step(words.waits, 4, 1, {first}, false);
  words.step(words.waits, 5, 1, {early, other});
  Box word = Box::flat(0, 8);
  auto copy = words.graph->addCopy(
      {"copy", {0}, words.memory + 48, words.memory + 16, word, word},
      {{early}});
  ASSERT_TRUE(copy);
  words.step(words.waits, 7, 6, {*copy}); // after a launch of the driver's
  EXPECT_EQ(words.build(), 2u);
  *words.word(0) = 1;
  ASSERT_TRUE(words.exec->launch());
  EXPECT_EQ(*words.word(7), expectedOf(4));
  words.close();
}

/// A copy of a few bytes within the GPU is a kernel that waits, so a chain
/// through it begins early on both sides.
TEST(Early, SmallCopiesAreOfTheChain) {
  size_t began = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Words words(seed);
    Box word = Box::flat(0, 8);
    std::vector<GraphNodeId> last = {words.step(words.waits, 1, 0, {})};
    for (size_t k = 1; k < 5; k += 2) {
      auto copy = words.graph->addCopy({"copy",
                                        {0},
                                        words.memory + 8 * (k + 1),
                                        words.memory + 8 * k,
                                        word,
                                        word,
                                        true},
                                       last);
      ASSERT_TRUE(copy);
      last = {words.step(words.waits, k + 2, k + 1, {*copy})};
    }
    EXPECT_EQ(words.build(), 4u);
    *words.word(0) = 1;
    ASSERT_TRUE(words.exec->launch());
    ASSERT_EQ(*words.word(5), expectedOf(4)) << seed;
    began += words.fake->earlyBegins;
    words.close();
  }
  EXPECT_GT(began, 40u) << "hardly one began early";
}

TEST(Early, LargeCopiesAreNot) {
  Words words;
  EXPECT_EQ(words.driver->earlyCopyBytes(), uint64_t(1) << 20);
  const uint64_t bytes = (uint64_t(1) << 20) + 8;
  std::byte *large = *words.driver->allocate({0}, 2 * bytes);
  GraphNodeId first = words.step(words.waits, 1, 0, {});
  Box all = Box::flat(0, int64_t(bytes));
  auto copy = words.graph->addCopy(
      {"copy", {0}, large + bytes, large, all, all, true}, {{first}});
  ASSERT_TRUE(copy);
  words.step(words.waits, 7, 6, {*copy});
  EXPECT_EQ(words.build(), 0u);
  words.close();
}

TEST(Early, NotOnGpusBeforeSm90) {
  Words words(0, 8);
  EXPECT_FALSE(words.driver->awaits(words.waits));
  EXPECT_EQ(words.driver->earlyCopyBytes(), 0u);
  GraphNodeId first = words.step(words.waits, 1, 0, {});
  words.step(words.waits, 2, 1, {first});
  EXPECT_EQ(words.build(), 0u);
  words.close();
}

TEST(Early, TheDriverSaysWhoWaits) {
  Words words;
  EXPECT_TRUE(words.driver->awaits(words.waits));
  EXPECT_FALSE(words.driver->awaits(words.whole));
  EXPECT_FALSE(words.driver->awaits({99}));
  words.close();
}

/// Their edges are read back: one that became another is found.
TEST(Early, EdgesAreReadBack) {
  Words words;
  GraphNodeId first = words.step(words.waits, 1, 0, {});
  words.step(words.waits, 2, 1, {first});
  words.fake->losesEarlyEdges = true;
  auto made = words.graph->instantiate();
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, ErrorKind::Internal);
  EXPECT_NE(made.error().message.find("an edge waits for something else"),
            std::string::npos)
      << made.error().message;
  words.close();
}

/// Between ranges that are timed by events there are events.
TEST(Early, NotWhereEventsTime) {
  Words words;
  GraphNodeId first = words.step(words.waits, 1, 0, {});
  words.step(words.waits, 2, 1, {first});
  EXPECT_EQ(words.build(), 1u);
  *words.word(0) = 1;
  std::vector<NodeTiming> timings;
  Result<void> ok = words.exec->launchTimed(timings);
  ASSERT_TRUE(ok) << ok.error().message;
  EXPECT_EQ(words.numEarly(), 0u);
  ASSERT_EQ(timings.size(), 2u);
  EXPECT_LE(timings[0].endUs, timings[1].startUs);
  EXPECT_EQ(*words.word(2), expectedOf(3));
  words.close();
}

/// What is changed in place keeps its edges; else it is made anew.
TEST(Early, UpdatesKeepWhatIsWaitedFor) {
  Words words;
  auto make = [&](bool mayBeginEarly, size_t from) {
    words.graph = words.driver->createGraph();
    GraphNodeId first = words.step(words.waits, 1, from, {});
    words.step(words.waits, 2, 1, {first}, mayBeginEarly);
  };
  make(true, 0);
  EXPECT_EQ(words.build(), 1u);
  auto instantiations = [&] {
    return std::count(words.fake->called.begin(), words.fake->called.end(),
                      "cuGraphInstantiateWithParams");
  };
  make(true, 5);
  ASSERT_TRUE(words.graph->instantiateOver(words.exec));
  EXPECT_EQ(instantiations(), 1);
  *words.word(5) = 1;
  ASSERT_TRUE(words.exec->launch());
  EXPECT_EQ(*words.word(2), expectedOf(3));
  make(false, 5);
  ASSERT_TRUE(words.graph->instantiateOver(words.exec));
  EXPECT_EQ(instantiations(), 2);
  EXPECT_EQ(words.numEarly(), 0u);
  words.close();
}

} // namespace

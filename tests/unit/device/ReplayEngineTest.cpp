// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The replay engine on random graphs: every node must find all its
// dependencies, and nothing else of this replay undone or done twice.

#include "device/host/HostDriver.h"
#include "device/host/HostGraph.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <sched.h>
#include <set>
#include <thread>

namespace {

using namespace mgpu;
using namespace mgpu::device;

/// `replays` is plain on purpose: ThreadSanitizer then sees a missing
/// happens-before edge that the values alone might not show.
struct TestNode {
  uint64_t replays = 0;
  uint64_t violations = 0;
  uint32_t work = 0;
  std::vector<const TestNode *> dependencies;

  static void run(void *self) {
    auto *node = static_cast<TestNode *>(self);
    for (const TestNode *dependency : node->dependencies)
      node->violations += dependency->replays != node->replays + 1;
    for (volatile uint32_t spin = 0; spin < node->work;)
      spin = spin + 1;
    ++node->replays;
  }
};

struct TestGraph {
  std::vector<std::unique_ptr<TestNode>> nodes;
  std::unique_ptr<GraphExec> exec;

  void add(HostGraph &graph, DeviceId device, uint32_t work,
           const std::vector<uint32_t> &dependencies) {
    nodes.push_back(std::make_unique<TestNode>());
    nodes.back()->work = work;
    std::vector<GraphNodeId> ids;
    for (uint32_t dependency : dependencies) {
      ids.push_back({dependency});
      nodes.back()->dependencies.push_back(nodes[dependency].get());
    }
    auto id = graph.addCall(device, TestNode::run, nodes.back().get(), ids);
    ASSERT_TRUE(id) << id.error().message;
    ASSERT_EQ(id->value, nodes.size() - 1);
  }

  void expectReplayed(uint64_t times) const {
    for (size_t k = 0; k < nodes.size(); ++k) {
      ASSERT_EQ(nodes[k]->replays, times) << "node " << k;
      ASSERT_EQ(nodes[k]->violations, 0u) << "node " << k;
    }
  }
};

TestGraph randomGraph(Driver &driver, uint32_t seed) {
  std::mt19937 random(seed);
  auto below = [&](uint32_t n) { return uint32_t(random() % n); };
  auto graph = driver.createGraph();
  TestGraph result;
  uint32_t count = below(4) == 0 ? below(4) : 1 + below(120);
  uint32_t maxEdges = below(5), reach = 1 + below(40), heavy = below(4);
  for (uint32_t k = 0; k < count; ++k) {
    std::vector<uint32_t> dependencies;
    for (uint32_t e = 0; k > 0 && e < maxEdges; ++e)
      dependencies.push_back(k - 1 - below(std::min(k, reach)));
    DeviceId device{int32_t(below(driver.numDevices() + 1)) - 1};
    uint32_t work = heavy == 0 && below(30) == 0 ? 20000 : below(20);
    result.add(static_cast<HostGraph &>(*graph), device, work, dependencies);
  }
  auto exec = graph->instantiate();
  EXPECT_TRUE(exec);
  result.exec = std::move(*exec);
  return result;
}

class ReplayEngine : public testing::TestWithParam<uint32_t> {};

TEST_P(ReplayEngine, RandomGraphsKeepEveryOrder) {
  auto driver = createHostDriver(6, GetParam());
  ASSERT_TRUE(driver);
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    TestGraph graph = randomGraph(**driver, seed);
    for (int replay = 0; replay < 20; ++replay)
      ASSERT_TRUE(graph.exec->launch());
    ASSERT_NO_FATAL_FAILURE(graph.expectReplayed(20));
  }
}

TEST_P(ReplayEngine, AnOldGraphReplaysBetweenOthers) {
  auto driver = createHostDriver(4, GetParam());
  ASSERT_TRUE(driver);
  TestGraph a = randomGraph(**driver, 1001), b = randomGraph(**driver, 1002);
  for (uint64_t replay = 1; replay <= 200; ++replay) {
    ASSERT_TRUE(a.exec->launch());
    ASSERT_TRUE(b.exec->launch());
    if (replay % 10 == 0) // workers get the time to park
      std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  a.expectReplayed(200);
  b.expectReplayed(200);
}

TEST_P(ReplayEngine, TwoCallersAtOnce) {
  auto driver = createHostDriver(4, GetParam());
  ASSERT_TRUE(driver);
  TestGraph a = randomGraph(**driver, 2001), b = randomGraph(**driver, 2002);
  std::thread other([&] {
    for (int replay = 0; replay < 500; ++replay)
      EXPECT_TRUE(b.exec->launch());
  });
  for (int replay = 0; replay < 500; ++replay)
    EXPECT_TRUE(a.exec->launch());
  other.join();
  a.expectReplayed(500);
  b.expectReplayed(500);
}

TEST_P(ReplayEngine, PingPongBetweenDevices) {
  auto driver = createHostDriver(3, GetParam());
  ASSERT_TRUE(driver);
  auto graph = (*driver)->createGraph();
  TestGraph chain;
  for (uint32_t k = 0; k < 300; ++k)
    chain.add(static_cast<HostGraph &>(*graph), {int32_t(k % 3)}, 0,
              k == 0 ? std::vector<uint32_t>{} : std::vector<uint32_t>{k - 1});
  chain.exec = std::move(*graph->instantiate());
  for (int replay = 0; replay < 100; ++replay)
    ASSERT_TRUE(chain.exec->launch());
  chain.expectReplayed(100);
}

TEST_P(ReplayEngine, LongNodesMakeQueuesParkAndComeBack) {
  auto driver = createHostDriver(4, GetParam());
  ASSERT_TRUE(driver);
  auto graph = (*driver)->createGraph();
  TestGraph nodes;
  // Each layer: one long node, on another device each time, all others wait.
  for (uint32_t layer = 0; layer < 8; ++layer)
    for (uint32_t k = 0; k < 4; ++k) {
      std::vector<uint32_t> dependencies;
      for (uint32_t d = 0; layer > 0 && d < 4; ++d)
        dependencies.push_back((layer - 1) * 4 + d);
      nodes.add(static_cast<HostGraph &>(*graph), {int32_t(k)},
                k == layer % 4 ? 200000 : 10, dependencies);
    }
  nodes.exec = std::move(*graph->instantiate());
  for (int replay = 0; replay < 20; ++replay)
    ASSERT_TRUE(nodes.exec->launch());
  nodes.expectReplayed(20);
}

TEST_P(ReplayEngine, TimedReplayRunsTheSameAndOrdersTimes) {
  auto driver = createHostDriver(4, GetParam());
  ASSERT_TRUE(driver);
  TestGraph graph = randomGraph(**driver, 77);
  std::vector<NodeTiming> timings;
  for (int replay = 0; replay < 10; ++replay) {
    ASSERT_TRUE(graph.exec->launchTimed(timings));
    ASSERT_TRUE(graph.exec->launch());
  }
  graph.expectReplayed(20);
  ASSERT_EQ(timings.size(), graph.nodes.size());
  for (size_t k = 0; k < timings.size(); ++k) {
    EXPECT_EQ(timings[k].node.value, k);
    EXPECT_LT(timings[k].queue, GetParam());
    EXPECT_LE(0, timings[k].startUs);
    EXPECT_LE(timings[k].startUs, timings[k].endUs);
    for (const TestNode *dependency : graph.nodes[k]->dependencies)
      for (size_t d = 0; d < k; ++d)
        if (graph.nodes[d].get() == dependency) {
          EXPECT_LE(timings[d].endUs, timings[k].startUs);
        }
  }
}

/// A node of a chain that takes its time until one of them has run on another
/// thread than the first.
struct DeviceChain {
  std::thread::id caller = std::this_thread::get_id();
  bool ranElsewhere = false;
  static void run(void *self) {
    auto *chain = static_cast<DeviceChain *>(self);
    if (std::this_thread::get_id() != chain->caller)
      chain->ranElsewhere = true;
    else if (!chain->ranElsewhere)
      std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
};

TEST_P(ReplayEngine, LateWorkersGetTheirQueuesBack) {
  uint32_t numQueues = GetParam();
  auto driver = createHostDriver(numQueues, numQueues);
  ASSERT_TRUE(driver);
  auto graph = (*driver)->createGraph();
  auto &host = static_cast<HostGraph &>(*graph);
  // Device 0 waits for all others at once, while their workers still wake up:
  // the caller takes those queues. Then every one has a chain of its own.
  std::vector<GraphNodeId> first;
  for (int32_t device = 1; device < int32_t(numQueues); ++device)
    first.push_back(*host.addCall({device}, [](void *) {}, nullptr, {}));
  GraphNodeId join = *host.addCall(
      {0}, [](void *) {}, nullptr, first);
  std::vector<DeviceChain> chains(numQueues);
  for (int32_t device = 1; device < int32_t(numQueues); ++device) {
    GraphNodeId last = join;
    for (uint32_t k = 0; k < 5000; ++k)
      last = *host.addCall({device}, DeviceChain::run, &chains[device],
                           std::span(&last, 1));
  }
  auto exec = graph->instantiate();
  ASSERT_TRUE(exec);
  for (int replay = 0; replay < 10; ++replay) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1)); // workers park
    ASSERT_TRUE((*exec)->launch());
    for (uint32_t device = 1; device < numQueues; ++device) {
      EXPECT_TRUE(chains[device].ranElsewhere)
          << "device " << device << " in replay " << replay;
      chains[device].ranElsewhere = false;
    }
  }
}

TEST_P(ReplayEngine, ProgressCountersWrap) {
  uint32_t numQueues = GetParam();
  for (uint32_t start : {0x7fffff80u, 0x80000010u, 0xffffff80u}) {
    SCOPED_TRACE(start);
    std::mt19937 random(start);
    std::vector<TestNode> nodes(200);
    std::vector<ProgramNode> shape;
    for (uint32_t k = 0; k < nodes.size(); ++k) {
      shape.push_back({k % numQueues, {TestNode::run, &nodes[k]}, {}});
      nodes[k].work = random() % 200;
      for (uint32_t e = 0; k > 0 && e < 2; ++e) {
        uint32_t dependency = k - 1 - random() % std::min(k, 10u);
        shape[k].dependencies.push_back(dependency);
        nodes[k].dependencies.push_back(&nodes[dependency]);
      }
    }
    WorkerProgram program = buildProgram(shape, numQueues);
    ReplayJob job{&program, program.serial.data(), {}};
    for (const WorkerQueue &queue : program.queues)
      job.queues.push_back(queue.ops.data());
    WorkerPool pool(numQueues, start);
    for (uint64_t replay = 1; replay <= 20; ++replay)
      pool.run(job);
    for (const TestNode &node : nodes) {
      ASSERT_EQ(node.replays, 20u);
      ASSERT_EQ(node.violations, 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Queues, ReplayEngine, testing::Values(1u, 2u, 3u, 4u),
                         testing::PrintToStringParamName());

/// Which CPUs each thread of this process may use, by its number.
std::map<int, std::set<int>> affinities() {
  std::map<int, std::set<int>> found;
  for (const auto &entry :
       std::filesystem::directory_iterator("/proc/self/task")) {
    const int thread = std::stoi(entry.path().filename().string());
    cpu_set_t set;
    if (sched_getaffinity(thread, sizeof set, &set) != 0)
      continue;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set))
        found[thread].insert(cpu);
  }
  return found;
}

TEST(WorkerPool, WorkersStayOnTheirCpus) {
  // ThreadSanitizer adds a thread of its own to a process's first.
  std::thread([] {}).join();
  const auto before = affinities();
  const std::set<int> allowed = before.begin()->second;
  const int last = *allowed.rbegin();
  // The third worker's CPU may not be used, and the fourth has none.
  const int cpus[] = {last, last, 1 << 20};
  std::multiset<size_t> sizes;
  {
    WorkerPool pool(5, 0, cpus);
    const std::multiset<size_t> expected = {1, 1, allowed.size(),
                                            allowed.size()};
    for (int k = 0; k < 500 && sizes != expected; ++k) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      sizes.clear();
      for (const auto &[thread, may] : affinities())
        if (!before.contains(thread)) {
          sizes.insert(may.size());
          EXPECT_TRUE(may.size() > 1 || may.contains(last) ||
                      allowed.size() == 1);
        }
    }
    EXPECT_EQ(sizes, expected);
  }
  EXPECT_EQ(affinities(), before); // the caller's too
}

TEST(WorkerPool, RefusesAProgramForAnotherNumberOfQueues) {
  EXPECT_DEATH(WorkerPool(0), "the caller has a queue of its own");
  Op op{[](void *) {}, nullptr};
  std::vector<ProgramNode> nodes{{0, op, {}}};
  WorkerProgram program = buildProgram(nodes, 2);
  ReplayJob job{&program,
                program.serial.data(),
                {program.queues[0].ops.data(), program.queues[1].ops.data()}};
  WorkerPool one(1);
  EXPECT_DEATH(one.run(job), "a program is for a pool of as many queues");
}

TEST(WorkerQueue, DropsImpliedWaits) {
  // Queue 0: a0 a1; queue 1: b0 after a1 and a0, b1 after a0.
  Op op{[](void *) {}, nullptr};
  std::vector<ProgramNode> nodes{
      {0, op, {}}, {0, op, {}}, {1, op, {0, 1}}, {1, op, {0}}};
  WorkerProgram program = buildProgram(nodes, 2);
  ASSERT_EQ(program.queues[1].waits.size(), 1u);
  EXPECT_EQ(program.queues[1].waits[0].queue, 0u);
  EXPECT_EQ(program.queues[1].waits[0].ordinal, 1u);
  // Queue 0 publishes once, after a1; its end waits for queue 1.
  ASSERT_EQ(program.queues[0].segments.size(), 2u);
  EXPECT_EQ(program.queues[0].segments[0].opEnd, 2u);
  EXPECT_TRUE(program.queues[0].segments[0].publishes);
  ASSERT_EQ(program.queues[0].waits.size(), 1u);
}

TEST(WorkerQueue, DropsWaitsImpliedThroughAThirdQueue) {
  // c after b after a, and c after a directly.
  Op op{[](void *) {}, nullptr};
  std::vector<ProgramNode> nodes{{0, op, {}}, {1, op, {0}}, {2, op, {0, 1}}};
  WorkerProgram program = buildProgram(nodes, 3);
  ASSERT_EQ(program.queues[2].waits.size(), 1u);
  EXPECT_EQ(program.queues[2].waits[0].queue, 1u);
}

} // namespace

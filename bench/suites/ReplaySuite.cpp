// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What a replay costs per node of the host target, beside oneTBB's flow graph
// on the same graphs in the same run. A node increments its own counter.
//   chain    1024 nodes, each after the one before; the first half on device
//            0, the second on device 1
//   pingpong the same chain, the devices taking turns: every edge crosses
//   layered  32 layers of 128; a node follows 3 random ones of the layer
//            before; the first half of a layer on device 0
// Read `per_node` (seconds in JSON). `lanes` is ours, the number after it the
// threads; graphs are built once. Each is 21 samples of at least 10 ms: their
// median, 95th percentile and worst. `busy` has another thread spin on CPU 0
// meanwhile.

#include "device/host/HostDriver.h"
#include "device/host/HostGraph.h"

#include <algorithm>
#include <atomic>
#include <benchmark/benchmark.h>
#include <random>
#include <sched.h>
#include <thread>

#ifdef MGPU_HAVE_TBB
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#endif

namespace {

using namespace mgpu;
using namespace mgpu::device;

struct Shape {
  std::vector<int32_t> devices;
  std::vector<std::vector<uint32_t>> dependencies;
  size_t size() const { return devices.size(); }
};

Shape chain(bool alternating) {
  Shape shape;
  for (uint32_t k = 0; k < 1024; ++k) {
    shape.devices.push_back(alternating ? int32_t(k % 2) : int32_t(k / 512));
    shape.dependencies.emplace_back();
    if (k > 0)
      shape.dependencies.back().push_back(k - 1);
  }
  return shape;
}

Shape layered() {
  constexpr uint32_t layers = 32, width = 128, edges = 3;
  Shape shape;
  std::mt19937 random(1);
  for (uint32_t layer = 0; layer < layers; ++layer)
    for (uint32_t k = 0; k < width; ++k) {
      shape.devices.push_back(int32_t(2 * k / width));
      shape.dependencies.emplace_back();
      for (uint32_t e = 0; layer > 0 && e < edges; ++e)
        shape.dependencies.back().push_back((layer - 1) * width +
                                            random() % width);
    }
  return shape;
}

const Shape &shapeNamed(int which) {
  static const Shape shapes[] = {chain(false), chain(true), layered()};
  return shapes[which];
}

/// Neighbouring counters share cache lines within a device, never across.
struct Counters {
  explicit Counters(const Shape &shape)
      : ofDevice{std::vector<uint64_t>(shape.size() + 16),
                 std::vector<uint64_t>(shape.size() + 16)} {
    for (size_t k = 0; k < shape.size(); ++k)
      nodes.push_back(&ofDevice[shape.devices[k]][8 + k]);
  }
  std::vector<uint64_t> ofDevice[2];
  std::vector<uint64_t *> nodes;
};

void increment(void *counter) { ++*static_cast<uint64_t *>(counter); }

/// Fails the run unless every node ran in every replay.
void finish(benchmark::State &state, const Counters &counters,
            uint64_t warmups) {
  uint64_t replays = state.iterations() + warmups;
  for (const uint64_t *counter : counters.nodes)
    if (*counter != replays)
      return state.SkipWithError("a node did not run once per replay");
  double nodes = double(state.iterations()) * double(counters.nodes.size());
  state.counters["per_node"] = benchmark::Counter(
      nodes, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

/// Work of somebody else on CPU 0 as long as it lives.
class Competitor {
public:
  Competitor()
      : thread([this] {
          cpu_set_t first;
          CPU_ZERO(&first);
          CPU_SET(0, &first);
          sched_setaffinity(0, sizeof(first), &first);
          while (!stop.load(std::memory_order_relaxed))
            ;
        }) {}
  ~Competitor() {
    stop = true;
    thread.join();
  }

private:
  std::atomic<bool> stop = false;
  std::thread thread;
};

double p95(const std::vector<double> &samples) {
  std::vector<double> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  return sorted[(sorted.size() - 1) * 95 / 100];
}
double worst(const std::vector<double> &samples) {
  return *std::max_element(samples.begin(), samples.end());
}

void ours(benchmark::State &state, int which, uint32_t numLanes) {
  const Shape &shape = shapeNamed(which);
  Counters counters(shape);
  auto driver = createHostDriver(2, numLanes);
  if (!driver)
    return state.SkipWithError(driver.error().message.c_str());
  auto graph = (*driver)->createGraph();
  auto *host = static_cast<HostGraph *>(graph.get());
  std::vector<GraphNodeId> dependencies;
  for (size_t k = 0; k < shape.size(); ++k) {
    dependencies.clear();
    for (uint32_t dependency : shape.dependencies[k])
      dependencies.push_back({dependency});
    if (!host->addCall({shape.devices[k]}, increment, counters.nodes[k],
                       dependencies))
      return state.SkipWithError("a node was refused");
  }
  auto exec = graph->instantiate();
  (void)(*exec)->launch();
  for (auto _ : state)
    (void)(*exec)->launch();
  finish(state, counters, 1);
}

#ifdef MGPU_HAVE_TBB
template <typename Policy>
void tbbFlowGraph(benchmark::State &state, int which, uint32_t threads) {
  namespace flow = oneapi::tbb::flow;
  using Node = flow::continue_node<flow::continue_msg, Policy>;
  const Shape &shape = shapeNamed(which);
  Counters counters(shape);
  oneapi::tbb::global_control limit(
      oneapi::tbb::global_control::max_allowed_parallelism, threads);
  flow::graph graph;
  flow::broadcast_node<flow::continue_msg> start(graph);
  std::vector<std::unique_ptr<Node>> nodes;
  for (size_t k = 0; k < shape.size(); ++k) {
    uint64_t *counter = counters.nodes[k];
    nodes.push_back(std::make_unique<Node>(
        graph, [counter](const flow::continue_msg &message) {
          ++*counter;
          return message;
        }));
    if (shape.dependencies[k].empty())
      flow::make_edge(start, *nodes[k]);
    for (uint32_t dependency : shape.dependencies[k])
      flow::make_edge(*nodes[dependency], *nodes[k]);
  }
  auto replay = [&] {
    start.try_put(flow::continue_msg());
    graph.wait_for_all();
  };
  replay();
  for (auto _ : state)
    replay();
  finish(state, counters, 1);
}
#endif

void registerAll() {
  const char *names[] = {"chain", "pingpong", "layered"};
  for (int which = 0; which < 3; ++which) {
    std::string name = names[which];
    for (uint32_t threads : {1u, 2u}) {
      std::string suffix = "/" + std::to_string(threads);
      auto add = [&](const std::string &engine, auto function) {
        benchmark::RegisterBenchmark((name + "/" + engine + suffix).c_str(),
                                     function)
            ->UseRealTime()
            ->MeasureProcessCPUTime()
            ->MinTime(0.02)
            ->Repetitions(21)
            ->ReportAggregatesOnly()
            ->ComputeStatistics("p95", p95)
            ->ComputeStatistics("worst", worst);
      };
      add("lanes", [=](benchmark::State &s) { ours(s, which, threads); });
      add("lanes_busy", [=](benchmark::State &s) {
        Competitor competitor;
        ours(s, which, threads);
      });
#ifdef MGPU_HAVE_TBB
      namespace flow = oneapi::tbb::flow;
      add("tbb", [=](benchmark::State &s) {
        tbbFlowGraph<flow::queueing>(s, which, threads);
      });
      add("tbb_lightweight", [=](benchmark::State &s) {
        tbbFlowGraph<flow::lightweight>(s, which, threads);
      });
#endif
    }
  }
}

const bool registered = (registerAll(), true);

} // namespace

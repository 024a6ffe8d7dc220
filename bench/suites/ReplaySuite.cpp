// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Measures what a replay costs per node of the host target, beside oneTBB's
// flow graph on the same graphs in the same run. A node increments its own
// counter.
//   chain    1024 nodes, each after the one before; the first half on device
//            0, the second on device 1
//   pingpong the same chain, the devices taking turns: every edge crosses
//   layered  32 layers of 128; a node follows 3 random ones of the layer
//            before; the first half of a layer on device 0
// The number after the graph is ours of threads and oneTBB's of threads; graphs
// are built once. Each column is of 21 samples of at least 10 ms, in 7 rounds
// that take every case in turn, so that what else the machine does meets all:
//   ns          median time per node
//   p95_ratio   95th percentile / median
//   busy_ns     median beside a process that spins, pinned to the first CPU
//   busy_ratio  busy_ns / ns
//   tbb_ns      continue_node with its default policy, tbb_ratio = tbb_ns / ns
//   tbbl_ns     continue_node with the lightweight policy, and tbbl_ratio
// `Time` is the median time of a replay.

#include "bench/measure/Summary.h"
#include "device/host/HostDriver.h"
#include "device/host/HostGraph.h"

#include <algorithm>
#include <benchmark/benchmark.h>
#include <chrono>
#include <csignal>
#include <functional>
#include <random>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

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
  static const Shape shapes[] = {chain(false), layered(), chain(true)};
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

/// A graph ready to replay, and the samples taken of it.
struct Engine {
  Engine(const Shape &shape) : counters(shape) {}
  virtual ~Engine() = default;
  virtual void replay() = 0;

  /// Seconds per replay over at least 10 ms.
  double sample() {
    using Clock = std::chrono::steady_clock;
    Clock::time_point start = Clock::now();
    for (uint64_t count = 0;;) {
      for (uint64_t k = 0; k < batch; ++k)
        replay();
      count += batch;
      replays += batch;
      std::chrono::duration<double> passed = Clock::now() - start;
      if (passed.count() >= 10e-3)
        return passed.count() / double(count);
      // The clock is read about 100 times a sample, whatever a replay costs.
      batch = 1 + uint64_t(1e-4 * double(count) / passed.count());
    }
  }

  /// Every node ran once per replay.
  bool sound() const {
    return std::ranges::all_of(counters.nodes, [&](const uint64_t *counter) {
      return *counter == replays;
    });
  }

  Counters counters;
  uint64_t batch = 1, replays = 0;
};

struct Threads final : Engine {
  Threads(const Shape &shape, uint32_t numThreads) : Engine(shape) {
    auto driver = createHostDriver(2, numThreads);
    if (!driver)
      throw std::runtime_error(driver.error().message);
    auto graph = (*driver)->createGraph();
    auto *host = static_cast<HostGraph *>(graph.get());
    std::vector<GraphNodeId> dependencies;
    for (size_t k = 0; k < shape.size(); ++k) {
      dependencies.clear();
      for (uint32_t dependency : shape.dependencies[k])
        dependencies.push_back({dependency});
      if (auto node = host->addCall({shape.devices[k]}, increment,
                                    counters.nodes[k], dependencies);
          !node)
        throw std::runtime_error(node.error().message);
    }
    exec = std::move(*graph->instantiate());
  }
  void replay() override { (void)exec->launch(); }

  std::unique_ptr<GraphExec> exec;
};

#ifdef MGPU_HAVE_TBB
template <typename Policy>
struct TbbFlowGraph final : Engine {
  using Message = oneapi::tbb::flow::continue_msg;
  using Node = oneapi::tbb::flow::continue_node<Message, Policy>;

  explicit TbbFlowGraph(const Shape &shape) : Engine(shape), start(graph) {
    namespace flow = oneapi::tbb::flow;
    for (size_t k = 0; k < shape.size(); ++k) {
      uint64_t *counter = counters.nodes[k];
      nodes.push_back(
          std::make_unique<Node>(graph, [counter](const Message &message) {
            ++*counter;
            return message;
          }));
      if (shape.dependencies[k].empty())
        flow::make_edge(start, *nodes[k]);
      for (uint32_t dependency : shape.dependencies[k])
        flow::make_edge(*nodes[dependency], *nodes[k]);
    }
  }
  void replay() override {
    start.try_put(Message());
    graph.wait_for_all();
  }

  oneapi::tbb::flow::graph graph;
  oneapi::tbb::flow::broadcast_node<Message> start;
  std::vector<std::unique_ptr<Node>> nodes;
};
#endif

/// A process that spins on the first CPU this one may use, when resumed.
class Competitor {
public:
  Competitor() {
    cpu_set_t allowed, first;
    sched_getaffinity(0, sizeof(allowed), &allowed);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &allowed))
      ++cpu;
    CPU_ZERO(&first);
    CPU_SET(cpu, &first);
    pid_t parent = getpid();
    child = fork();
    if (child < 0)
      throw std::runtime_error("no process to compete with");
    if (child > 0) {
      pause();
      return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || sched_setaffinity(0, sizeof(first), &first) != 0)
      _exit(1);
    for (volatile uint64_t spun = 0;;)
      spun = spun + 1;
  }
  ~Competitor() {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  Competitor(const Competitor &) = delete;
  void resume() { kill(child, SIGCONT); }
  void pause() { kill(child, SIGSTOP); }
  bool lives() { return waitpid(child, nullptr, WNOHANG) == 0; }

private:
  pid_t child = -1;
};

/// Lets the scheduler see who runs now, and oneTBB's threads go to sleep.
void settle() { std::this_thread::sleep_for(std::chrono::milliseconds(10)); }

void measure(benchmark::State &state, int which, uint32_t threads) {
  constexpr int rounds = 7, samplesPerRound = 3;
  const Shape &shape = shapeNamed(which);
  struct Case {
    std::string name;
    Engine *engine;
    bool busy;
    std::vector<double> seconds;
  };
  Competitor competitor; // before there are threads to fork beside
  std::vector<std::unique_ptr<Engine>> engines;
  engines.push_back(std::make_unique<Threads>(shape, threads));
  std::vector<Case> cases{{"", engines[0].get(), false, {}},
                          {"busy", engines[0].get(), true, {}}};
#ifdef MGPU_HAVE_TBB
  namespace flow = oneapi::tbb::flow;
  oneapi::tbb::global_control limit(
      oneapi::tbb::global_control::max_allowed_parallelism, threads);
  engines.push_back(std::make_unique<TbbFlowGraph<flow::queueing>>(shape));
  cases.push_back({"tbb", engines.back().get(), false, {}});
  engines.push_back(std::make_unique<TbbFlowGraph<flow::lightweight>>(shape));
  cases.push_back({"tbbl", engines.back().get(), false, {}});
#endif
  for (int round = 0; round < rounds; ++round)
    for (Case &one : cases) {
      if (one.busy)
        competitor.resume();
      settle();
      for (int k = 0; k < samplesPerRound; ++k)
        one.seconds.push_back(one.engine->sample());
      if (one.busy)
        competitor.pause();
    }
  if (!competitor.lives())
    return state.SkipWithError("the competing process ended early");
  for (const auto &engine : engines)
    if (!engine->sound())
      return state.SkipWithError("a node did not run once per replay");

  const bench::Summary ours = bench::summarize(cases[0].seconds);
  const double median = ours.median.middle;
  double nsPerNode = 1e9 / double(shape.size());
  for (auto _ : state)
    state.SetIterationTime(median);
  state.counters["ns"] = median * nsPerNode;
  state.counters["p95_ratio"] = ours.p95 / median;
  for (size_t k = 1; k < cases.size(); ++k) {
    double other = bench::median(cases[k].seconds);
    state.counters[cases[k].name + "_ns"] = other * nsPerNode;
    state.counters[cases[k].name + "_ratio"] = other / median;
  }
}

void registerAll() {
  const char *names[] = {"chain", "layered", "pingpong"};
  for (int which = 0; which < 3; ++which)
    for (uint32_t threads : {1u, 2u})
      benchmark::RegisterBenchmark(
          (std::string(names[which]) + "/" + std::to_string(threads)).c_str(),
          [=](benchmark::State &state) {
            try {
              measure(state, which, threads);
            } catch (const std::exception &error) {
              state.SkipWithError(error.what());
            }
          })
          ->UseManualTime()
          ->Iterations(1)
          ->Unit(benchmark::kMicrosecond);
}

const bool registered = (registerAll(), true);

} // namespace

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measures what the CUDA target costs and gains on GPU 0: one JSON object on a
// line for each figure, everything a ratio or difference of samples taken in
// turn.
//   launch     a whole replay call beside cuGraphLaunch and a poll of the same
//              nodes and edges: chains and layers of 1 to 4096 nodes
//   span       the GPU's time for a replay beside launches into one stream,
//              and into eight
//   bandwidth  elementwise kernels beside the copy within the GPU
//   serve      samples for another program, as it asks
//   (tests/gpu/torch_graphs.py)
// Without a GPU it says so and ends with 0; with MGPU_REQUIRE_GPU in the
// environment with 3.
#include "bench/measure/Summary.h"
#include "bench/suites/cuda/Bandwidth.h"
#include "bench/suites/cuda/StepProgram.h"
#include "device/cuda/CudaDriver.h"
#include "kernels/compile/NvrtcCompiler.h"
#include "support/Clock.h"
#include "support/FileIO.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace {

using namespace mgpu;
using namespace mgpu::bench;
using nlohmann::json;

struct Settings {
  double secondsPerCase = 0.5;
  uint32_t mostNodes = 4096;
  int leastRounds = 15, mostRounds = 400;
};

void report(const json &line) {
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

json toJson(const Interval &interval) {
  return {interval.middle, interval.low, interval.high};
}

/// State that all parts share.
class Suite {
public:
  explicit Suite(Settings settings) : settings(settings) {}

  Result<void> open() {
    MGPU_TRY_ASSIGN(gpu, BareGpu::open());
    device::CudaOptions options;
    options.compile = [](auto &...what) {
      return kernels::compileCubin(what...);
    };
    MGPU_TRY_ASSIGN(driver, device::createCudaDriver(options));
    MGPU_TRY_ASSIGN(cubin, kernels::compileCubin(stepSource(), "step.cu",
                                                 driver->architecture()));
    MGPU_TRY_ASSIGN(kernel, gpu->load(cubin, "step"));
    return {};
  }

  std::vector<StepShape> shapes() const {
    std::vector<StepShape> all;
    for (const char *kind : {"chain", "layers"})
      for (uint32_t nodes = 1; nodes <= settings.mostNodes; nodes *= 4)
        all.push_back({kind, nodes});
    return all;
  }

  Result<void> launches();
  Result<void> spans();
  Result<void> serve();

  std::unique_ptr<BareGpu> gpu;
  std::unique_ptr<device::Driver> driver;

private:
  /// Rounds until the case's time is up.
  Result<void> rounds(const std::function<Result<void>(bool counts)> &round);

  Settings settings;
  std::vector<std::byte> cubin;
  CUkernel kernel = nullptr;
};

Result<void>
Suite::rounds(const std::function<Result<void>(bool counts)> &round) {
  const Clock::time_point start = Clock::now();
  for (int k = 0; k < 3; ++k)
    MGPU_TRY(round(false));
  for (int k = 0; k < settings.mostRounds &&
                  (k < settings.leastRounds ||
                   secondsSince(start) < settings.secondsPerCase);
       ++k)
    MGPU_TRY(round(true));
  return {};
}

Result<void> Suite::launches() {
  for (const StepShape &shape : shapes()) {
    MGPU_TRY_ASSIGN(StepProgram program,
                    StepProgram::make(shape, cubin, *driver));
    MGPU_TRY_ASSIGN(BareGpu::Graph bare,
                    gpu->makeGraph(kernel, program.launches, program.edges));
    std::vector<double> ours, theirs, call, wall, cpu, oursCpu, theirsCpu;
    Result<void> ok = rounds([&](bool counts) -> Result<void> {
      double launchUs = 0;
      MGPU_TRY_ASSIGN(CallCost other, gpu->replay(bare, launchUs));
      const CallCost start = costNow();
      MGPU_TRY(program.replay());
      const CallCost mine = costNow() - start;
      if (!counts)
        return {};
      ours.push_back(mine.wallUs);
      theirs.push_back(other.wallUs);
      oursCpu.push_back(mine.cpuUs);
      theirsCpu.push_back(other.cpuUs);
      call.push_back(launchUs);
      wall.push_back(mine.wallUs - other.wallUs);
      cpu.push_back(mine.cpuUs - other.cpuUs);
      return {};
    });
    gpu->destroy(bare);
    MGPU_TRY(ok);
    MGPU_TRY(program.checkResult());
    const size_t count = ours.size();
    const double oursUs = median(ours), theirsUs = median(theirs);
    report({{"part", "launch"},
            {"shape", shape.kind},
            {"nodes", shape.nodes},
            {"edges", program.edges.size()},
            {"rounds", count},
            {"replay_us", oursUs},
            {"bare_us", theirsUs},
            {"ratio", oursUs / theirsUs},
            {"difference_us", toJson(summarize(std::move(wall)).median)},
            {"replay_cpu_us", median(oursCpu)},
            {"bare_cpu_us", median(theirsCpu)},
            {"difference_cpu_us", toJson(summarize(std::move(cpu)).median)},
            {"bare_launch_call_us", median(call)}});
  }
  return {};
}

Result<void> Suite::spans() {
  for (const StepShape &shape : shapes()) {
    MGPU_TRY_ASSIGN(StepProgram program,
                    StepProgram::make(shape, cubin, *driver));
    std::vector<double> graph, one, eight;
    MGPU_TRY(rounds([&](bool counts) -> Result<void> {
      MGPU_TRY_ASSIGN(double graphUs, program.replaySpan());
      MGPU_TRY_ASSIGN(double oneUs,
                      gpu->spanInStream(kernel, program.launches));
      MGPU_TRY_ASSIGN(
          double eightUs,
          gpu->spanInStreams(kernel, program.launches, program.edges, 8));
      if (counts) {
        graph.push_back(graphUs);
        one.push_back(oneUs);
        eight.push_back(eightUs);
      }
      return {};
    }));
    MGPU_TRY(program.checkResult());
    const double graphUs = median(graph), oneUs = median(one),
                 eightUs = median(eight);
    report({{"part", "span"},
            {"shape", shape.kind},
            {"nodes", shape.nodes},
            {"rounds", graph.size()},
            {"graph_us", graphUs},
            {"one_stream_us", oneUs},
            {"eight_streams_us", eightUs},
            {"over_one_stream", graphUs / oneUs},
            {"over_eight_streams", graphUs / eightUs}});
  }
  return {};
}

/// Lines from stdin: "cubin FILE" writes the step kernel's, "sample KIND NODES"
/// answers with medians of a few replays. Ends with the input.
Result<void> Suite::serve() {
  std::map<std::pair<std::string, uint32_t>, StepProgram> programs;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string word, name;
    uint32_t nodes = 0;
    words >> word >> name >> nodes;
    if (word == "cubin") {
      MGPU_TRY(writeFileAtomic(
          name, {reinterpret_cast<const char *>(cubin.data()), cubin.size()}));
      report({{"cubin", name}, {"entry", "step"}});
      continue;
    }
    if (word != "sample" || (name != "chain" && name != "layers") ||
        nodes == 0 || nodes > 4096)
      return fail(ErrorKind::Usage, "no such request: " + line);
    auto at = programs.find({name, nodes});
    if (at == programs.end()) {
      MGPU_TRY_ASSIGN(StepProgram made,
                      StepProgram::make({name, nodes}, cubin, *driver));
      at = programs.emplace(std::pair(name, nodes), std::move(made)).first;
      MGPU_TRY(at->second.replay());
    }
    std::vector<double> calls, spans;
    for (int k = 0; k < 10; ++k) {
      const CallCost start = costNow();
      MGPU_TRY(at->second.replay());
      calls.push_back((costNow() - start).wallUs);
      MGPU_TRY_ASSIGN(double span, at->second.replaySpan());
      spans.push_back(span);
    }
    report({{"call_us", median(calls)}, {"span_us", median(spans)}});
  }
  return {};
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("What the CUDA target costs and gains on GPU 0, a JSON object "
               "on a line for each figure");
  Settings settings;
  BandwidthOptions bandwidth;
  bool serves = false;
  app.add_option("--seconds", settings.secondsPerCase,
                 "For each shape, at least 15 rounds")
      ->check(CLI::Range(0.0, 60.0))
      ->capture_default_str();
  app.add_option("--nodes", settings.mostNodes, "Of the largest shape")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--rounds", settings.leastRounds, "Of each shape, at least")
      ->check(CLI::Range(6, 400))
      ->capture_default_str();
  app.add_option(
      "--bandwidth", bandwidth.bundle,
      "A bundle of elementwise kernels (tests/gpu/elementwise.mlir)");
  app.add_option("--bandwidth-seconds", bandwidth.seconds, "For all of them")
      ->capture_default_str();
  app.add_flag("--serve", serves, "Samples as asked for by lines of stdin");
  CLI11_PARSE(app, argc, argv);
  Suite suite(settings);
  auto end = [](const Error &error) {
    fmt::print(stderr, "bench-cuda: {}\n", error.message);
    return error.kind == ErrorKind::Absent ? 3 : 1;
  };
  if (Result<void> ok = suite.open(); !ok) {
    const int code = end(ok.error());
    return code == 3 && !std::getenv("MGPU_REQUIRE_GPU") ? 0 : code;
  }
  Result<void> ok;
  if (serves) {
    ok = suite.serve();
  } else {
    report({{"part", "gpu"},
            {"target", suite.driver->description()},
            {"architecture", suite.driver->architecture()}});
    ok = suite.launches();
    if (ok)
      ok = suite.spans();
    if (ok && !bandwidth.bundle.empty())
      ok = measureBandwidth(*suite.gpu, *suite.driver, bandwidth,
                            [](const json &line) {
                              json out = line;
                              out["part"] = "bandwidth";
                              report(out);
                            });
  }
  return ok ? 0 : end(ok.error());
}

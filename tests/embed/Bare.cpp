// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the C interface adds to a replay: a small graph replayed by its
// executable alone, by the replayer around it, and by mgt_replay().
// Usage: embed_bare COUNT prints the medians of five rounds
#include "capture/replay/Bundle.h"
#include "capture/replay/Replayer.h"
#include "device/host/CpuLevel.h"
#include "device/host/HostDriver.h"
#include "pipeline/c/mgt.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

using namespace mgpu;

namespace {

/// Two copies of 16 bytes and a kernel between them.
void writeSmall(const std::string &path) {
  mgt::Builder builder("small", 1);
  const auto x = builder.argument("x", {4}), y = builder.result("y", {4});
  const auto a = builder.temporary("a", 0, {4});
  mgt_kernel_spec bump{};
  bump.entry = "bump";
  bump.host = "void bump(mgpu_block, float *y) { y[0] += 1; }";
  builder.copy(a, x);
  builder.launch(builder.kernel(bump), 0, {1}, {mgt::update(a)});
  builder.copy(y, a);
  mgt_save_options options{};
  options.size = sizeof options;
  options.cpu = "x86-64-v2";
  builder.save(path, &options);
}

template <typename Call>
double nanosecondsOf(uint64_t count, Call call) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  for (uint64_t k = 0; k < count; ++k)
    if (!call())
      std::exit(1);
  return std::chrono::duration<double, std::nano>(Clock::now() - start)
             .count() /
         double(count);
}

Result<void> compare(const std::string &path, uint64_t count) {
  MGPU_TRY_ASSIGN(capture::Bundle bundle, capture::Bundle::open(path));
  MGPU_TRY_ASSIGN(const planner::Plan plan, bundle.plan());
  MGPU_TRY_ASSIGN(auto kernels, bundle.hostKernels(device::cpuLevels()));
  MGPU_TRY_ASSIGN(auto driver,
                  device::openHostTarget("host", 1, bundle.threads()));
  MGPU_TRY_ASSIGN(capture::Replayer replayer,
                  capture::Replayer::create(bundle.program().dag, plan,
                                            kernels.objects, *driver));
  mgt::Program program(path, "host");
  program.write("x", std::vector<float>(4, 1));
  program.load();
  MGPU_TRY(replayer.load());
  device::GraphExec &graph = *replayer.graph(planner::Phase::Replay).exec;
  std::array<std::array<double, 5>, 3> ns{};
  for (size_t round = 0; round < 5; ++round) {
    ns[0][round] = nanosecondsOf(count, [&] { return bool(graph.launch()); });
    ns[1][round] =
        nanosecondsOf(count, [&] { return bool(replayer.replay()); });
    ns[2][round] = nanosecondsOf(
        count, [&] { return mgt_replay(program.get()) == MGT_OK; });
  }
  for (auto &each : ns)
    std::sort(each.begin(), each.end());
  std::printf("a replay of 3 nodes: %.0f ns bare, %.0f ns by the replayer, "
              "%.0f ns by mgt_replay\n",
              ns[0][2], ns[1][2], ns[2][2]);
  return {};
}

} // namespace

int main(int argc, char **argv) try {
  const uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
  const std::string path = "/tmp/mgpu-bare-" + std::to_string(getpid());
  writeSmall(path);
  const Result<void> done = compare(path, count);
  unlink(path.c_str());
  if (!done)
    std::fprintf(stderr, "%s\n", done.error().message.c_str());
  return done ? 0 : 1;
} catch (const mgt::Error &error) {
  return std::fprintf(stderr, "%s\n", error.what()), error.status;
}

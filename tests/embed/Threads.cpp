// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Threads that build, open, save, load, replay, share and close programs of
// their own, all at once.
// Usage: embed_threads THREADS ROUNDS
#include "pipeline/c/mgt.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <unistd.h>

namespace {

std::atomic<int> faults = 0;

void require(bool holds, const char *what) {
  if (holds)
    return;
  ++faults;
  std::fprintf(stderr, "%s: %s\n", what, mgt_error());
}

/// Adds `number` to each of `devices` parts, and sums them.
void build(mgt::Builder &builder, int32_t devices, float number) {
  const auto x = builder.argument("x", {4}), y = builder.result("y", {4});
  mgt_kernel_spec spec{};
  spec.entry = "add";
  spec.host = "void add(mgpu_block, float *y, float a) { for (int i = 0; i < "
              "4; ++i) y[i] += a; }";
  const mgt_kernel add = builder.kernel(spec);
  std::vector<mgt::View> parts;
  for (int32_t d = 0; d < devices; ++d) {
    mgt_buffer_spec state{};
    const std::string name = "state" + std::to_string(d);
    state.name = name.c_str();
    state.kind = MGT_EXTERNAL;
    state.device = d;
    const auto outside = builder.buffer(state, {4});
    parts.push_back(builder.temporary("a", d, {4}));
    builder.copy(parts.back(), x);
    builder.launch(add, d, {1}, {mgt::update(parts.back()), number});
    builder.copy(outside, parts.back());
  }
  builder.allReduce(parts);
  builder.copy(y, parts[0]);
}

void replay(mgt::Program &program, int32_t devices, float number) {
  std::vector<float> in(4, 1), out(4);
  program.write("x", in);
  program.load();
  for (int k = 0; k < 3; ++k)
    program.replay();
  program.fetch();
  program.read("y", out);
  require(out[3] == float(devices) * (1 + number), "a result");
  require(!program.explain().empty() && !program.times().empty(), "a text");
}

void work(int number, int rounds, const std::string &folder) try {
  const std::string path = folder + "/" + std::to_string(number) + ".mgpu";
  for (int round = 0; round < rounds; ++round) {
    const int32_t devices = 1 + (number + round) % 3;
    const auto added = float(number + round);
    mgt::Builder builder("threads", uint32_t(devices));
    build(builder, devices, added);
    mgt::Program built = builder.open("host:3");
    replay(built, devices, added);
    builder.save(path);
    mgt::Program loaded(path, "host:3");
    mgt::check(mgt_share(loaded.get(), "state0", built.get(), "state0"));
    replay(loaded, devices, added);
    std::vector<float> state(4);
    built.read("state0", state);
    require(state[0] == 1 + added, "what is shared");
    require(mgt_share(loaded.get(), "none", built.get(), "x") == MGT_USAGE &&
                std::string(mgt_error()).find("none") != std::string::npos,
            "the sentence of this thread");
  }
  unlink(path.c_str());
} catch (const mgt::Error &error) {
  require(false, error.what());
}

} // namespace

int main(int argc, char **argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 8,
            rounds = argc > 2 ? std::atoi(argv[2]) : 10;
  char folder[] = "/tmp/mgpu-threads-XXXXXX";
  if (!mkdtemp(folder))
    return 1;
  std::vector<std::thread> threads;
  for (int k = 0; k < count; ++k)
    threads.emplace_back(work, k, rounds, std::string(folder));
  for (std::thread &each : threads)
    each.join();
  rmdir(folder);
  std::printf("%d threads, %d programs each\n", count, 2 * rounds);
  return faults == 0 ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of the C interface in any order, right and wrong, with nulls, handles
// of nothing, and sizes of other versions of the structs. Each gives a status,
// and a sentence where it fails; what can be opened is replayed and closed.
// Usage: fuzz_calls SECONDS [FIRST_SEED]
#include "pipeline/c/mgt.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

const char *kernelText = "void bump(mgpu_block b, float *y, const float *x, "
                         "int64_t n) { for (int64_t i = 0; i < n; ++i) y[i] = "
                         "x[i] + 1; }";

class Fuzzer {
public:
  explicit Fuzzer(uint32_t seed) : seed(seed), random(seed) {}
  ~Fuzzer() { mgt_builder_free(builder); }

  void run() {
    made(mgt_builder_new(chance(8) ? nullptr : "fuzzed", devices(), &builder));
    for (uint32_t calls = pick(40); calls-- > 0;)
      call();
    finish();
  }
  static std::atomic<size_t> numOpened, numFailed, numCalls;

private:
  uint32_t pick(uint32_t below) { return random() % below; }
  bool chance(uint32_t of) { return pick(of) == 0; }
  uint32_t devices() { return chance(30) ? pick(3) * 5000 : 1 + pick(3); }
  int64_t figure() {
    static const int64_t odd[] = {-1, 0, INT64_MAX, INT64_MIN,
                                  int64_t(1) << 40};
    return chance(25) ? odd[pick(5)] : pick(5);
  }

  /// A failure has a sentence, and it is the handle's as well.
  void made(mgt_status status) {
    ++numCalls;
    if (status == MGT_OK)
      return;
    ++numFailed;
    const char *own = builder ? mgt_builder_error(builder) : mgt_error();
    if (status > MGT_UNSUPPORTED || !*mgt_error() || status == MGT_INTERNAL ||
        !own) {
      std::fprintf(stderr, "seed %u: status %d: %s\n", seed, int(status),
                   mgt_error());
      std::abort();
    }
  }
  /// Usually right.
  template <typename Struct>
  Struct sized() {
    Struct out;
    std::memset(static_cast<void *>(&out), 0, sizeof out);
    static const size_t others[] = {0, 1, 8, sizeof(Struct) - 8, size_t(-1)};
    out.size = chance(40) ? others[pick(5)] : sizeof out;
    return out;
  }
  const char *name() {
    static const char *const names[] = {"a", "b", "c", "d",    "e",
                                        "f", "",  "9", nullptr};
    return names[pick(chance(10) ? 9 : 6)];
  }
  const char *typeName() {
    static const char *const types[] = {"f32", "i64", "f16", "i1", "q7", ""};
    return chance(3) ? types[pick(6)] : nullptr;
  }
  mgt_view view() {
    mgt_view out{pick(12), 0, 0, nullptr, nullptr};
    if (chance(2))
      return out;
    out.offset = figure();
    out.rank = pick(3);
    if (!chance(20))
      out.sizes = figures();
    if (chance(3))
      out.strides = figures();
    if (chance(50))
      out.rank = 1000;
    if (out.rank > 3)
      out.sizes = out.strides = nullptr;
    return out;
  }
  const int64_t *figures() {
    pool.push_back({figure(), figure(), figure()});
    return pool.back().data();
  }

  void call() {
    mgt_builder *on = chance(60) ? nullptr : builder;
    switch (pick(11)) {
    case 0:
    case 1:
      return addBuffer(on);
    case 2:
      return addKernel(on);
    case 3:
    case 4:
      return launch(on);
    case 5: {
      const mgt_view to = view(), from = view();
      return made(mgt_builder_copy(on, chance(50) ? nullptr : &to, &from));
    }
    case 6: {
      const mgt_view to = view();
      return made(mgt_builder_fill(on, &to, "\1\2\3\4\5\6\7", pick(9)));
    }
    case 7:
      return collective(on);
    case 8: {
      mgt_buffer value = 0;
      if (chance(2))
        return made(mgt_builder_end_loop(on));
      return made(chance(10) ? mgt_builder_drop_loop(on)
                             : mgt_builder_begin_loop(on, pick(4), figure(),
                                                      figure(), &value));
    }
    case 9:
      if (chance(2))
        return made(mgt_builder_part(on, int(pick(6)) - 2, pick(9), pick(9)));
      return made(mgt_builder_place(on, chance(4) ? nullptr : "fuzz.c:1"));
    default:
      return ask(on);
    }
  }
  void addBuffer(mgt_builder *on) {
    auto spec = sized<mgt_buffer_spec>();
    spec.name = name();
    spec.kind = int(pick(chance(20) ? 100 : 6));
    const bool isOnDevice = spec.kind == MGT_TEMPORARY ||
                            spec.kind == MGT_RESIDENT ||
                            spec.kind == MGT_EXTERNAL;
    spec.device = chance(20)   ? int32_t(pick(9)) - 4
                  : isOnDevice ? int32_t(pick(2))
                               : MGT_HOST;
    spec.type = typeName();
    spec.rank = pick(3);
    const int64_t shape[] = {chance(30) ? figure() : 4,
                             chance(30) ? figure() : 4};
    spec.shape = chance(40) ? nullptr : shape;
    static const char *const roles[] = {"input",   "output",      "resident",
                                        "dynamic", "specialised", "x"};
    spec.role = chance(6) ? roles[pick(6)] : nullptr;
    static const char contents[256] = {1};
    // A constant of more bytes than there are would be a fault of the caller's.
    const bool isSmall = shape[0] < 5 && shape[1] < 5;
    spec.contents = isSmall ? contents : nullptr;
    mgt_buffer buffer = 0;
    made(mgt_builder_buffer(on, chance(60) ? nullptr : &spec,
                            chance(60) ? nullptr : &buffer));
  }
  void addKernel(mgt_builder *on) {
    auto spec = sized<mgt_kernel_spec>();
    spec.entry = chance(20) ? "no name" : "bump";
    spec.name = chance(8) ? "other" : nullptr;
    spec.host = chance(20) ? nullptr : kernelText;
    spec.block[0] = chance(20) ? 5000 : 1;
    const uint32_t values[] = {1, 2};
    const mgt_tunable tunable{chance(8) ? nullptr : "ITEMS", pick(3), values};
    const mgt_cubin cubin{chance(3) ? "gfx" : "sm_90", "\0cubin", pick(6)};
    spec.num_tunables = pick(2);
    spec.tunables = &tunable;
    spec.num_cubins = chance(10);
    spec.cubins = &cubin;
    static const char *const rules[] = {"ITEMS <= 2", "ITEMS % 1 == 0",
                                        "ITEMS *", nullptr, "3 == 4"};
    spec.num_rules = chance(5) ? pick(3) : 0;
    spec.rules = chance(20) ? nullptr : rules + pick(3);
    mgt_kernel kernel = 0;
    made(mgt_builder_kernel(on, &spec, &kernel));
  }
  void launch(mgt_builder *on) {
    auto spec = sized<mgt_launch_spec>();
    spec.kernel = pick(chance(10) ? 9 : 2);
    spec.device = chance(20) ? -1 : int32_t(pick(2));
    spec.grid[0] = chance(30) ? 0xffffffffu : pick(3);
    // Mostly of one buffer, so that what is passed has four floats.
    const mgt_view whole{pick(8), 0, 0, nullptr, nullptr};
    mgt_arg args[] = {
        {chance(30) ? 77 : 3, chance(4) ? view() : whole, nullptr, 0},
        {1, chance(4) ? view() : whole, nullptr, 0},
        {0, {}, chance(20) ? "q" : "i64", 0},
        {5, whole, nullptr, 0}};
    spec.num_args = chance(60) ? pick(5) : 3 + pick(2);
    spec.args = chance(60) ? nullptr : args;
    spec.flops = chance(20) ? -1 : 5;
    const uint64_t most[] = {8, 0, UINT64_MAX, 1, 2};
    spec.most_bytes = chance(4) ? most : nullptr;
    made(mgt_builder_launch(on, &spec));
  }
  void collective(mgt_builder *on) {
    auto spec = sized<mgt_collective_spec>();
    spec.kind = int(pick(chance(20) ? 100 : 7));
    spec.reduction = int(pick(chance(20) ? 100 : 4));
    const mgt_view views[] = {view(), view(), view()};
    spec.num_members = pick(4);
    spec.send = chance(10) ? nullptr : views;
    spec.receive = chance(2) ? nullptr : views + (spec.num_members < 3);
    spec.axis = figure();
    spec.concat_axis = figure();
    spec.root = figure();
    const uint32_t pairs[] = {pick(3), pick(3), pick(3), pick(3)};
    spec.num_pairs = pick(3);
    spec.pairs = chance(20) ? nullptr : pairs;
    made(mgt_builder_collective(on, &spec));
  }
  mgt_plan_options planOptions() {
    auto options = sized<mgt_plan_options>();
    static const char *const schedulers[] = {"list", "serial", "shuffled", "x"};
    options.scheduler = chance(2) ? nullptr : schedulers[pick(4)];
    options.seed = pick(100);
    options.streams = chance(30) ? 0xffffffffu : pick(4);
    options.transforms = chance(20) ? "nonsense" : nullptr;
    options.threads = pick(3);
    if (chance(30))
      options.machine = chance(2) ? "sim:dgx-h200" : "sim:none";
    options.budget = chance(2) ? "3" : nullptr;
    options.no_tuned = chance(3);
    options.deadline_ms = chance(40) ? 5 : 0;
    return options;
  }
  void ask(mgt_builder *on) {
    const mgt_plan_options options = planOptions();
    const char *text = nullptr;
    made(chance(20) ? mgt_builder_probe(on) : mgt_builder_check(on));
    if (chance(20)) { // it searches nothing
      auto tune = sized<mgt_tune_options>();
      tune.budget = chance(2) ? "soon" : "1s";
      tune.num_inputs = 1;
      made(mgt_builder_tune(on, chance(2) ? "abacus" : "host", &tune, nullptr,
                            &text));
    }
    const auto give = chance(2) ? mgt_builder_explain : mgt_builder_plan_text;
    const mgt_status status =
        give(on, chance(3) ? nullptr : &options, chance(30) ? nullptr : &text);
    made(status);
    if (status == MGT_OK && (!text || !*text))
      std::abort();
    auto figures = sized<mgt_figures>();
    if (mgt_builder_figures(on, &options, &figures) == MGT_OK &&
        !(figures.replay_us >= figures.bound_us * (1 - 1e-9)))
      std::abort();
  }

  void finish() {
    while (chance(2) && mgt_builder_end_loop(builder) == MGT_OK)
      ;
    // Compiling takes longer than all the rest.
    static const char *const targets[] = {"host",         "host:9", "cuda:0,1",
                                          "sim:dgx-h200", "abacus", nullptr};
    const mgt_plan_options options = planOptions();
    mgt_program *program = nullptr;
    const mgt_status status =
        mgt_builder_open(builder, targets[chance(4) ? pick(6) : 0],
                         chance(3) ? nullptr : &options, &program);
    made(status);
    if ((status == MGT_OK) != (program != nullptr))
      std::abort();
    if (!program)
      return;
    ++numOpened;
    if (chance(4)) { // it does not need the builder
      mgt_builder_free(builder);
      builder = nullptr;
    }
    replay(program);
    mgt_close(program);
  }
  void replay(mgt_program *program) {
    const char *text = nullptr;
    const mgt_node_time *times = nullptr;
    size_t count = 0, bytes = 0;
    void *data = nullptr;
    mgt_figures figures{};
    mgt_facts facts{};
    mgt_counters counters{};
    mgt_argument about;
    alignas(8) static thread_local char memory[8][256];
    int32_t device = 0;
    for (uint32_t calls = 16; calls-- > 0;)
      switch (pick(11)) {
      case 6:
        ignored(mgt_bind(program, name(),
                         memory[pick(8)] + (chance(3) ? pick(16) : 0),
                         chance(4) ? pick(300) : 64));
        break;
      case 7:
        ignored(
            mgt_share(program, name(), chance(2) ? program : nullptr, name()));
        break;
      case 8:
        ignored(mgt_argument_device(program, pick(9), &device));
        ignored(mgt_configuration(program, chance(9) ? nullptr : &text));
        figures.size = chance(3) ? pick(200) : sizeof figures;
        ignored(mgt_get_figures(program, chance(9) ? nullptr : &figures));
        facts.size = chance(3) ? pick(200) : sizeof facts;
        ignored(mgt_get_facts(program, chance(9) ? nullptr : &facts));
        counters.size = chance(3) ? pick(200) : sizeof counters;
        ignored(mgt_get_counters(program, chance(9) ? nullptr : &counters));
        ignored(mgt_metrics_text(chance(9) ? nullptr : &text));
        ignored(mgt_audit(program, chance(9) ? nullptr : &text));
        break;
      case 0:
        ignored(mgt_load(program));
        break;
      case 1:
        ignored(mgt_replay(program));
        break;
      case 2:
        ignored(mgt_fetch(program));
        break;
      case 3:
        ignored(mgt_times(program, &times, chance(9) ? nullptr : &count));
        break;
      case 4:
        ignored(mgt_explain(program, &text));
        break;
      case 5:
        ignored(mgt_write(program, name(), "12345678", pick(9)));
        break;
      default:
        if (mgt_get_argument(program, pick(4), &about) == MGT_OK)
          ignored(mgt_memory(program, about.name, &data, &bytes));
      }
  }
  static void ignored(mgt_status status) {
    // A deadline of 5 ms loses programs on a loaded machine.
    if (status == MGT_INTERNAL || status > MGT_LOST)
      std::abort();
  }

  uint32_t seed;
  std::mt19937 random;
  mgt_builder *builder = nullptr;
  std::vector<std::vector<int64_t>> pool;
};
std::atomic<size_t> Fuzzer::numOpened, Fuzzer::numFailed, Fuzzer::numCalls;

} // namespace

int main(int argc, char **argv) {
  using Clock = std::chrono::steady_clock;
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
  std::atomic<uint32_t> count = 0;
  const uint32_t first = argc > 2 ? uint32_t(std::atoi(argv[2])) : 0;
  const auto start = Clock::now();
  // A slow machine does the first ones at least.
  auto work = [&] {
    for (uint32_t k;
         (k = count++) < 200 ||
         std::chrono::duration<double>(Clock::now() - start).count() < seconds;)
      Fuzzer(first + k).run();
  };
  std::thread other(work); // another thread, with handles of its own
  work();
  other.join();
  std::printf("%u sequences, %zu calls, %zu of them refused, %zu programs "
              "opened\n",
              count.load(), Fuzzer::numCalls.load(), Fuzzer::numFailed.load(),
              Fuzzer::numOpened.load());
  // One that is refused everything, or nothing, finds nothing.
  return Fuzzer::numOpened > count / 20 && Fuzzer::numFailed > count ? 0 : 1;
}

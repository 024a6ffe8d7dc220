// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program takes another's place, by right and wrong calls; replays that are
// begun and waited for. Usage: serve_swap FOLDER
#include "tests/serve/Weights.h"

#include <atomic>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

constexpr int64_t numWeights = 1 << 15; // 128 KiB, which are shared
const float x[4] = {1, 2, 3, 4};

Opened open(const std::string &path, float weight, mgt_options options = {}) {
  mgt_program *program = nullptr;
  options.size = sizeof options;
  OK(mgt_open_with(path.c_str(), nullptr, &options, &program));
  const std::vector<float> weights(numWeights, weight);
  OK(mgt_write(program, "w", weights.data(), numWeights * sizeof(float)));
  OK(mgt_write(program, "x", x, sizeof x));
  OK(mgt_load(program));
  return Opened(program);
}

bool isOf(const float (&y)[4], float weight, float add) {
  for (int k = 0; k < 4; ++k)
    if (y[k] != expected(x[k], weight, numWeights, add))
      return false;
  return true;
}
void gives(const Opened &program, float weight, float add) {
  float y[4] = {};
  OK(mgt_read(program.get(), "y", y, sizeof y));
  REQUIRE(isOf(y, weight, add));
}
void replays(const Opened &program, float weight, float add) {
  OK(mgt_replay(program.get()));
  gives(program, weight, add);
}

void valuesStay(const std::string &one, const std::string &other) {
  const Opened program = open(one, 0.5f), next = open(other, 0.25f);
  mgt_argument before{}, after{};
  OK(mgt_get_argument(program.get(), 1, &before));
  replays(program, 0.5f, 1);
  const float none[4] = {};
  OK(mgt_write(next.get(), "x", none, sizeof none));
  OK(mgt_swap(program.get(), next.get()));
  gives(program, 0.5f, 1); // the result of the replay before
  replays(program, 0.25f, 2);
  OK(mgt_get_argument(program.get(), 1, &after));
  REQUIRE(before.name == after.name && before.shape == after.shape);
  replays(next, 0.5f, 1); // goes on as well
  OK(mgt_swap(program.get(), next.get()));
  replays(program, 0.5f, 1);
  mgt_counters counters{};
  counters.size = sizeof counters;
  OK(mgt_get_counters(program.get(), &counters));
  REQUIRE(counters.replays == 3 && counters.failures == 0);
  mgt_facts facts{}, other_{};
  facts.size = other_.size = sizeof facts;
  OK(mgt_get_facts(program.get(), &facts));
  OK(mgt_get_facts(next.get(), &other_));
  REQUIRE(std::strcmp(facts.hash, other_.hash) != 0);
}

/// Memory that the caller gave or knows stays the argument's.
void memoryStays(const std::string &one, const std::string &other) {
  float in[4] = {1, 2, 3, 4}, out[4] = {};
  const Opened program = open(one, 0.5f);
  OK(mgt_bind(program.get(), "x", in, sizeof in));
  OK(mgt_bind(program.get(), "y", out, sizeof out));
  Opened next = open(other, 0.25f);
  OK(mgt_swap(program.get(), next.get()));
  OK(mgt_replay(program.get()));
  REQUIRE(isOf(out, 0.25f, 2));
  const Opened third = open(one, 0.5f), fourth = open(other, 0.125f);
  void *inPlace = nullptr, *result = nullptr;
  size_t bytes = 0;
  OK(mgt_memory(third.get(), "x", &inPlace, &bytes));
  OK(mgt_memory(third.get(), "y", &result, &bytes));
  OK(mgt_swap(third.get(), fourth.get()));
  std::memcpy(inPlace, x, sizeof x);
  OK(mgt_replay(third.get()));
  float y[4];
  std::memcpy(y, result, sizeof y);
  REQUIRE(isOf(y, 0.125f, 2));
  next.reset();
  OK(mgt_replay(program.get())); // the memory is not the other program's
  REQUIRE(isOf(out, 0.25f, 2));
}

/// The way back, after buffers took turns: the old program has one of them
/// already, as another argument.
void buffersTakeTurns(const std::string &one, const std::string &other) {
  float a[4], b[4], c[4] = {};
  const Opened program = open(one, 0.5f), next = open(other, 0.25f);
  std::memcpy(a, x, sizeof x);
  OK(mgt_bind(program.get(), "x", a, sizeof a));
  OK(mgt_bind(program.get(), "y", b, sizeof b));
  for (int round = 0; round < 4; ++round) {
    OK(mgt_swap(program.get(), next.get()));
    float *const in = round % 2 ? a : b, *const out =
                                             round % 2 ? b : c; // x, y = b, c
    for (const bool isResult : {round % 2 == 0, round % 2 == 1})
      OK(mgt_bind(program.get(), isResult ? "y" : "x", isResult ? out : in,
                  sizeof a));
    std::memcpy(in, x, sizeof x);
    OK(mgt_replay(program.get()));
    float y[4];
    std::memcpy(y, out, sizeof y);
    REQUIRE(isOf(y, round % 2 ? 0.5f : 0.25f, round % 2 ? 1 : 2));
  }
}

void memoryOutlivesItsProgram(const std::string &one,
                              const std::string &other) {
  const Opened program = open(one, 0.5f);
  void *result = nullptr;
  size_t bytes = 0;
  OK(mgt_memory(program.get(), "y", &result, &bytes));
  {
    const Opened next = open(other, 0.25f);
    OK(mgt_swap(program.get(), next.get()));
  } // what `program` was is closed
  OK(mgt_replay(program.get()));
  float y[4];
  std::memcpy(y, result, sizeof y);
  REQUIRE(isOf(y, 0.25f, 2));
}

void refused(const std::string &one, const std::string &folder) {
  const Opened program = open(one, 0.5f);
  replays(program, 0.5f, 1);
  saveWeights(folder + "/named.mgpu", numWeights, 1, "z");
  saveWeights(folder + "/longer.mgpu", 2 * numWeights, 1);
  mgt_program *given = nullptr;
  OK(mgt_open(one.c_str(), nullptr, &given));
  const Opened notLoaded(given);
  OK(mgt_open((folder + "/longer.mgpu").c_str(), nullptr, &given));
  const Opened longer(given);
  const std::vector<float> weights(2 * numWeights, 1.f);
  OK(mgt_write(given, "w", weights.data(), weights.size() * sizeof(float)));
  OK(mgt_write(given, "x", x, sizeof x));
  OK(mgt_load(given));
  const Opened named = open(folder + "/named.mgpu", 0.5f);
  FAILS(mgt_swap(program.get(), named.get()), MGT_USAGE, "'y' is not like 'z'");
  FAILS(mgt_swap(program.get(), longer.get()), MGT_USAGE, "'w' is not like");
  FAILS(mgt_swap(program.get(), notLoaded.get()), MGT_USAGE, "mgt_load first");
  FAILS(mgt_swap(program.get(), program.get()), MGT_USAGE, "two programs");
  FAILS(mgt_swap(program.get(), nullptr), MGT_USAGE, "two programs");
  FAILS(mgt_swap(nullptr, program.get()), MGT_USAGE, "two programs");
  gives(program, 0.5f, 1); // goes on
  replays(program, 0.5f, 1);
  const float slow[4] = {-1, 0, -1, 0};
  mgt_options late{};
  late.deadline_ms = 50;
  const Opened lost = open(one, 0.5f, late);
  OK(mgt_write(lost.get(), "x", slow, sizeof slow));
  FAILS(mgt_replay(lost.get()), MGT_LOST, "within 50 ms");
  FAILS(mgt_swap(program.get(), lost.get()), MGT_USAGE, "was lost");
  FAILS(mgt_swap(lost.get(), program.get()), MGT_LOST, "was lost before");
  replays(program, 0.5f, 1);
}

/// What would hand memory to a caller that does not expect it is refused.
void memoryOfOthers(const std::string &one, const std::string &other) {
  const Opened program = open(one, 0.5f), next = open(other, 0.25f);
  replays(program, 0.5f, 1);
  OK(mgt_replay_begin(next.get()));
  FAILS(mgt_swap(program.get(), next.get()), MGT_USAGE, "wait for its replay");
  OK(mgt_wait(next.get()));
  float in[4] = {1, 2, 3, 4};
  OK(mgt_bind(next.get(), "x", in, sizeof in));
  FAILS(mgt_swap(program.get(), next.get()), MGT_USAGE,
        "'x' of the other program has memory");
  replays(program, 0.5f, 1); // goes on
  OK(mgt_bind(program.get(), "x", in, sizeof in));
  OK(mgt_swap(program.get(), next.get()));
  replays(program, 0.25f, 2);
  OK(mgt_swap(program.get(), next.get()));
  replays(program, 0.5f, 1);
}

/// Residents that were filled in place go with their values.
void residentsGoAlong(const std::string &one, const std::string &other) {
  std::vector<float> ours(numWeights, 0.5f), its(numWeights, 0.25f);
  const size_t size = numWeights * sizeof(float);
  mgt_program *opened[2];
  for (int k : {0, 1}) {
    OK(mgt_open((k ? other : one).c_str(), nullptr, &opened[k]));
    OK(mgt_write(opened[k], "x", x, sizeof x));
  }
  const Opened program(opened[0]);
  Opened next(opened[1]);
  void *memory = nullptr;
  size_t bytes = 0;
  OK(mgt_memory(program.get(), "w", &memory, &bytes));
  std::memcpy(memory, ours.data(), size);
  OK(mgt_bind(next.get(), "w", its.data(), size));
  OK(mgt_load(program.get()));
  OK(mgt_load(next.get()));
  replays(program, 0.5f, 1);
  OK(mgt_swap(program.get(), next.get()));
  replays(program, 0.25f, 2);
  std::vector<float> read(numWeights);
  OK(mgt_read(program.get(), "w", read.data(), size));
  REQUIRE(read == its);
  OK(mgt_load(program.get()));
  replays(program, 0.25f, 2);
  next.reset();
  std::memcpy(memory, its.data(), size); // is there as long as `program`
}

/// Swaps from another thread while one writes, replays and reads.
void underLoad(const std::string &one, const std::string &other, bool audits,
               uint32_t deadline) {
  mgt_options options{};
  options.audit = audits ? 7 : 0, options.deadline_ms = deadline;
  options.audit_action = audits ? MGT_AUDIT_STOP : MGT_AUDIT_GO_ON;
  const Opened program = open(one, 0.5f, options),
               next = open(other, 0.25f, options);
  std::atomic<bool> stops{false};
  std::atomic<int> swaps{0};
  std::thread operating([&] {
    for (; !stops; ++swaps) {
      OK(mgt_swap(program.get(), next.get()));
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
  int seen[2] = {0, 0};
  for (int k = 0; k < 3000 || swaps < 20; ++k) {
    float y[4] = {};
    OK(mgt_write(program.get(), "x", x, sizeof x));
    if (k % 3 || audits) {
      OK(mgt_replay(program.get()));
    } else {
      OK(mgt_replay_begin(program.get()));
      OK(mgt_wait(program.get()));
    }
    OK(mgt_read(program.get(), "y", y, sizeof y));
    const bool first = isOf(y, 0.5f, 1);
    REQUIRE(first || isOf(y, 0.25f, 2));
    ++seen[first];
  }
  stops = true;
  operating.join();
  REQUIRE(seen[0] > 0 && seen[1] > 0);
  mgt_counters counters{};
  counters.size = sizeof counters;
  OK(mgt_get_counters(program.get(), &counters));
  REQUIRE(counters.replays == uint64_t(seen[0] + seen[1]));
  REQUIRE(counters.differences == 0 && counters.failures == 0);
}

/// A run that was begun ends before any other call has its say.
void begun(const std::string &one) {
  const Opened program = open(one, 0.5f);
  mgt_options options{};
  OK(mgt_wait(program.get())); // nothing was begun
  for (int k = 0; k < 200; ++k) {
    OK(mgt_replay_begin(program.get()));
    if (k % 2)
      OK(mgt_wait(program.get()));
    gives(program, 0.5f, 1);
  }
  OK(mgt_replay_begin(program.get()));
  OK(mgt_replay_on(program.get(), nullptr)); // waits for the one before
  OK(mgt_replay(program.get()));
  FAILS(mgt_replay_on(program.get(), &options), MGT_USAGE, "no streams");
  mgt_counters counters{};
  counters.size = sizeof counters;
  OK(mgt_get_counters(program.get(), &counters));
  REQUIRE(counters.replays == 203);
  OK(mgt_replay_begin(program.get())); // and is closed meanwhile
  options.audit = 1;
  const Opened audited = open(one, 0.5f, options);
  FAILS(mgt_replay_begin(audited.get()), MGT_UNSUPPORTED, "audited");
  OK(mgt_replay_on(audited.get(), nullptr));
  OK(mgt_get_counters(audited.get(), &counters));
  REQUIRE(counters.audits == 1 && counters.differences == 0);
  options.audit = 0, options.deadline_ms = 50;
  const Opened late = open(one, 0.5f, options);
  const float slow[4] = {-1, 0, -1, 0};
  OK(mgt_write(late.get(), "x", slow, sizeof slow));
  OK(mgt_replay_begin(late.get()));
  FAILS(mgt_wait(late.get()), MGT_LOST, "mgt_wait: it has not ended within 50");
  FAILS(mgt_replay_begin(late.get()), MGT_LOST, "was lost before");
  mgt_program *given = nullptr;
  OK(mgt_open(one.c_str(), nullptr, &given));
  const Opened notLoaded(given);
  FAILS(mgt_replay_begin(given), MGT_USAGE, "mgt_load");
  FAILS(mgt_replay_begin(nullptr), MGT_USAGE, "null");
  FAILS(mgt_wait(nullptr), MGT_USAGE, "null");
}

/// A child of fork() has nothing of its parent's programs, and opens its own.
void inChildren(const std::string &one, const std::string &other) {
  mgt_options options{};
  options.threads = 1;
  const Opened program = open(one, 0.5f), next = open(other, 0.25f);
  OK(mgt_replay_begin(program.get()));
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const char *words = "opened before this process was forked";
    float y[4];
    FAILS(mgt_replay(program.get()), MGT_USAGE, words);
    FAILS(mgt_wait(program.get()), MGT_USAGE, words);
    FAILS(mgt_read(program.get(), "y", y, sizeof y), MGT_USAGE, words);
    FAILS(mgt_swap(program.get(), next.get()), MGT_USAGE, words);
    // Asked for without its lock, which a thread of the parent may have.
    mgt_argument argument{};
    int32_t device = 0;
    uint32_t rank = 0, count = 0;
    FAILS(mgt_get_argument(program.get(), 0, &argument), MGT_USAGE, words);
    FAILS(mgt_argument_device(program.get(), 0, &device), MGT_USAGE, words);
    FAILS(mgt_get_rank(program.get(), &rank, &count), MGT_USAGE, words);
    mgt_close(next.get());
    replays(open(one, 0.5f, options), 0.5f, 1);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  gives(program, 0.5f, 1);
  OK(mgt_swap(program.get(), next.get()));
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  const std::string folder = argv[1], one = folder + "/first.mgpu",
                    other = folder + "/second.mgpu";
  saveWeights(one, numWeights, 1);
  saveWeights(other, numWeights, 2);
  valuesStay(one, other);
  memoryStays(one, other);
  buffersTakeTurns(one, other);
  memoryOutlivesItsProgram(one, other);
  refused(one, folder);
  memoryOfOthers(one, other);
  residentsGoAlong(one, other);
  underLoad(one, other, false, 0);
  underLoad(one, other, true, 0);
  underLoad(one, other, false, 20000);
  begun(one);
  inChildren(one, other);
  std::printf("programs take each other's place between two replays\n");
}

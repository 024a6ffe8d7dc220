// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A server with four workers, each with a bundle of its own: bundles are
// swapped under load, some replays are audited, some are late, and the process
// is killed and started again. Each request is answered once, by one bundle.
// Prints latencies, and judges none. Usage: serve_server FOLDER REQUESTS KILLS;
// with `pinned` for KILLS two workers alone, on a CPU each, whose bundles are
// swapped every millisecond.
#include "tests/serve/Weights.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <optional>
#include <random>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t numWeights = 1 << 15;
constexpr size_t numWorkers = 4;
constexpr uint64_t lateEvery = 10000;
struct Version {
  const char *file;
  float weight, add;
};
constexpr Version versions[2] = {{"old.mgpu", 0.5f, 1}, {"new.mgpu", 0.25f, 2}};

/// What outlives a server that is killed.
struct Request {
  enum State : uint32_t { Asked, Answered, Late };
  std::atomic<uint32_t> state;
  uint32_t us;
  float y[4];
};
struct Requests {
  std::atomic<uint64_t> next, swaps, audits, lost, starts;
  Request each[1];
};

void inputOf(uint64_t number, float (&x)[4]) {
  for (int k = 0; k < 4; ++k)
    x[k] = float(number % 97) + float(k);
  if (number % lateEvery == 1) // takes seconds
    x[0] = x[2] = -1;
}

Opened open(const std::string &folder, const Version &version,
            const mgt_options &options) {
  mgt_program *program = nullptr;
  OK(mgt_open_with((folder + "/" + version.file).c_str(), nullptr, &options,
                   &program));
  const std::vector<float> weights(numWeights, version.weight);
  const float x[4] = {};
  OK(mgt_write(program, "w", weights.data(), numWeights * sizeof(float)));
  OK(mgt_write(program, "x", x, sizeof x));
  OK(mgt_load(program));
  return Opened(program);
}

/// The first two workers have a deadline, the others audits; one without a
/// number has neither.
class Worker {
public:
  explicit Worker(const std::string &folder, std::optional<size_t> number = {})
      : hasDeadline(number && *number < 2), folder(folder) {
    options.size = sizeof options;
    options.threads = 1;
    if (hasDeadline)
      options.deadline_ms = 1000;
    else if (number)
      options.audit = 50, options.audit_action = MGT_AUDIT_STOP;
    program = open(folder, versions[0], options);
    next = open(folder, versions[1], options);
  }

  void answer(Requests &requests, uint64_t number) {
    Request &request = requests.each[number];
    float x[4];
    inputOf(number, x);
    const Clock::time_point start = Clock::now();
    OK(mgt_write(program.get(), "x", x, sizeof x));
    if (const mgt_status status = mgt_replay(program.get());
        status == MGT_LOST) { // opened again; the request is not
      const std::lock_guard guard(lock);
      program = open(folder, versions[0], options);
      ++requests.lost;
      request.state.store(Request::Late, std::memory_order_release);
      return;
    } else {
      OK(status);
    }
    OK(mgt_read(program.get(), "y", request.y, sizeof request.y));
    request.us =
        uint32_t(std::chrono::duration<double, std::micro>(Clock::now() - start)
                     .count());
    request.state.store(Request::Answered, std::memory_order_release);
  }
  void swap(Requests &requests) {
    const std::lock_guard guard(lock);
    const mgt_status status = mgt_swap(program.get(), next.get());
    REQUIRE(status == MGT_OK || status == MGT_LOST);
    requests.swaps += status == MGT_OK;
  }
  void count(Requests &requests) const {
    mgt_counters counters{};
    counters.size = sizeof counters;
    OK(mgt_get_counters(program.get(), &counters));
    REQUIRE(counters.differences == 0);
    requests.audits += counters.audits;
  }
  const bool hasDeadline;

private:
  std::string folder;
  mgt_options options{};
  std::mutex lock; ///< who opens `program` anew and who swaps it
  Opened program, next;
};

/// A request that was begun by a server that was killed is asked again.
void serve(const std::string &folder, Requests &requests, uint64_t count) {
  std::vector<std::unique_ptr<Worker>> workers;
  for (size_t k = 0; k < numWorkers; ++k)
    workers.push_back(std::make_unique<Worker>(folder, k));
  requests.next = 0;
  ++requests.starts;
  std::atomic<bool> stops{false};
  std::thread operating([&] {
    for (size_t k = 0; !stops; ++k) {
      workers[k % numWorkers]->swap(requests);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  std::vector<std::thread> threads;
  for (auto &worker : workers)
    threads.emplace_back([&] {
      // Who has no deadline leaves the late ones to those who have.
      for (uint64_t number; (number = requests.next++) < count;)
        if (requests.each[number].state == Request::Asked &&
            (worker->hasDeadline || number % lateEvery != 1))
          worker->answer(requests, number);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (uint64_t number = 1; number < count; number += lateEvery)
    if (requests.each[number].state == Request::Asked)
      workers[0]->answer(requests, number);
  stops = true;
  operating.join();
  for (const auto &worker : workers)
    worker->count(requests);
  _exit(0); // late threads are not waited for
}

bool isOf(const Request &request, uint64_t number, const Version &version) {
  float x[4];
  inputOf(number, x);
  for (int k = 0; k < 4; ++k)
    if (request.y[k] != expected(x[k], version.weight, numWeights, version.add))
      return false;
  return true;
}

void judge(const Requests &requests, uint64_t count) {
  uint64_t answers[2] = {0, 0}, late = 0;
  std::vector<uint32_t> us;
  for (uint64_t k = 0; k < count; ++k) {
    const Request &request = requests.each[k];
    REQUIRE(request.state != Request::Asked);
    if (request.state == Request::Late) {
      REQUIRE(k % lateEvery == 1);
      ++late;
      continue;
    }
    const bool isNew = isOf(request, k, versions[1]);
    REQUIRE(isNew || isOf(request, k, versions[0]));
    ++answers[isNew];
    us.push_back(request.us);
  }
  std::sort(us.begin(), us.end());
  std::printf("%llu answers of the old bundle and %llu of the new, %llu late; "
              "%llu swaps, %llu audits of servers that ended, %llu starts; "
              "p50 %u us, p99 %u us\n",
              (unsigned long long)answers[0], (unsigned long long)answers[1],
              (unsigned long long)late,
              (unsigned long long)requests.swaps.load(),
              (unsigned long long)requests.audits.load(),
              (unsigned long long)requests.starts.load(), us[us.size() / 2],
              us[us.size() * 99 / 100]);
  REQUIRE(answers[0] > 0 && answers[1] > 0 && late > 0);
  REQUIRE(requests.swaps > 0 && requests.audits > 0);
}

/// Answers requests on one CPU, and gives their microseconds.
std::vector<uint32_t> answerOn(int cpu, Worker &worker, Requests &requests,
                               uint64_t count) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(cpu, &cpus);
  REQUIRE(::sched_setaffinity(0, sizeof cpus, &cpus) == 0);
  std::vector<uint32_t> us;
  for (uint64_t k = 0; k < count; ++k) {
    const uint64_t number = uint64_t(cpu) * count + k;
    if (number % lateEvery == 1)
      continue;
    worker.answer(requests, number);
    us.push_back(requests.each[number].us);
    const bool isNew = isOf(requests.each[number], number, versions[1]);
    REQUIRE(isNew || isOf(requests.each[number], number, versions[0]));
  }
  return us;
}

void pinned(const std::string &folder, Requests &requests, uint64_t count) {
  std::vector<std::unique_ptr<Worker>> workers;
  while (workers.size() < 2)
    workers.push_back(std::make_unique<Worker>(folder));
  std::vector<uint32_t> us[2];
  std::atomic<int> running{2};
  std::vector<std::thread> threads;
  for (int cpu : {0, 1})
    threads.emplace_back([&, cpu] {
      us[cpu] = answerOn(cpu, *workers[size_t(cpu)], requests, count / 2);
      --running;
    });
  for (size_t k = 0; running > 0; ++k) {
    workers[k % 2]->swap(requests);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (std::thread &thread : threads)
    thread.join();
  us[0].insert(us[0].end(), us[1].begin(), us[1].end());
  std::sort(us[0].begin(), us[0].end());
  const uint32_t half = us[0][us[0].size() / 2],
                 most = us[0][us[0].size() * 99 / 100];
  std::printf("two pinned workers, %llu swaps: p50 %u us, p99 %u us, which is "
              "to be at most %.0f us\n",
              (unsigned long long)requests.swaps.load(), half, most,
              1.5 * half + 20);
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 4)
    return 2;
  const std::string folder = argv[1];
  const uint64_t count = std::strtoull(argv[2], nullptr, 10);
  const int kills = std::atoi(argv[3]);
  for (const Version &version : versions)
    saveWeights(folder + "/" + version.file, numWeights, version.add);
  void *memory =
      ::mmap(nullptr, sizeof(Requests) + count * sizeof(Request),
             PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  auto &requests = *static_cast<Requests *>(memory);
  if (argv[3] == std::string("pinned")) {
    pinned(folder, requests, count);
    return 0;
  }
  std::minstd_rand random(1);
  for (int k = 0; k <= kills; ++k) {
    const pid_t server = ::fork();
    REQUIRE(server >= 0);
    if (server == 0)
      serve(folder, requests, count);
    if (k < kills) {
      ::usleep(useconds_t(20000 + random() % 80000));
      ::kill(server, SIGKILL);
    }
    int status = 0;
    REQUIRE(::waitpid(server, &status, 0) == server);
    REQUIRE(k < kills ? WIFSIGNALED(status) || WEXITSTATUS(status) == 0
                      : WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  judge(requests, count);
}

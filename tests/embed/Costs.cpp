// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the library costs its caller.
//   embed_costs replays COUNT       replays a small graph: no allocation, lock
//                                   or system call, and no growth; else exit 1
//   embed_costs bundle FILE NODES   writes a bundle of so many nodes
//   embed_costs cold FILE           opens, loads and replays it once
#include "pipeline/c/mgt.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

/// What the process did while `counts` was set.
std::atomic<bool> counts = false;
std::atomic<uint64_t> allocations = 0, locks = 0;
volatile std::sig_atomic_t systemCalls = 0;

template <typename Function>
Function next(const char *name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

} // namespace

// In place of the C library's, for the library's calls too.
extern "C" {
void *__libc_malloc(size_t bytes);
void *malloc(size_t bytes) {
  if (counts.load(std::memory_order_relaxed))
    ++allocations;
  return __libc_malloc(bytes);
}
int pthread_mutex_lock(pthread_mutex_t *mutex) {
  static const auto real =
      next<int (*)(pthread_mutex_t *)>("pthread_mutex_lock");
  if (counts.load(std::memory_order_relaxed))
    ++locks;
  return real(mutex);
}
}

namespace {

/// From here on a system call is a signal, but for those that end the process.
bool countSystemCalls() {
  struct sigaction action {};
  action.sa_handler = [](int) { systemCalls = systemCalls + 1; };
  sigaction(SIGSYS, &action, nullptr);
  const auto allow = [](uint32_t number) {
    return std::array<sock_filter, 2>{
        sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  };
  std::vector<sock_filter> filter{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (uint32_t number : {SYS_rt_sigreturn, SYS_exit_group, SYS_write})
    for (const sock_filter &each : allow(number))
      filter.push_back(each);
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
  const sock_fprog program{static_cast<unsigned short>(filter.size()),
                           filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

long residentPages() {
  long all = 0, resident = 0;
  if (std::FILE *file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &all, &resident) != 2)
      resident = 0;
    std::fclose(file);
  }
  return resident;
}

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

mgt_kernel bumpOf(mgt::Builder &builder) {
  mgt_kernel_spec spec{};
  spec.entry = "bump";
  spec.host = "void bump(mgpu_block, float *y) { y[0] += 1; }";
  return builder.kernel(spec);
}

int replays(uint64_t count) {
  mgt::Builder builder("small", 1);
  const auto x = builder.argument("x", {4}), y = builder.result("y", {4});
  const auto a = builder.temporary("a", 0, {4});
  builder.copy(a, x);
  builder.launch(bumpOf(builder), 0, {1}, {mgt::update(a)});
  builder.copy(y, a);
  mgt::Program program = builder.open("host");
  program.write("x", std::vector<float>(4, 1));
  program.load();
  mgt_program *handle = program.get();
  for (int k = 0; k < 1000; ++k) // what is done once
    program.replay();
  counts = true;
  const double start = now();
  long before = 0; // half of them: pages are also touched by who measures
  for (uint64_t k = 0; k < count; ++k) {
    if (k == count / 2) {
      counts = false;
      residentPages(); // whose own code is then there
      before = residentPages();
      counts = true;
    }
    if (mgt_replay(handle) != MGT_OK)
      return std::fprintf(stderr, "%s\n", mgt_error()), 1;
  }
  const double seconds = now() - start;
  counts = false;
  const long grown = residentPages() - before;
  std::vector<float> out(4);
  program.read("y", out);
  const bool isWatched = countSystemCalls();
  for (uint64_t k = 0; isWatched && k < count; ++k)
    mgt_replay(handle);
  const bool isRight = out[0] == 2;
  const int calls = systemCalls; // printing makes some
  std::printf("%llu replays of 3 nodes: %.3f us each; %llu allocations, %llu "
              "locks, %d system calls%s, %ld pages more\n",
              static_cast<unsigned long long>(count), seconds * 1e6 / count,
              static_cast<unsigned long long>(allocations.load()),
              static_cast<unsigned long long>(locks.load()), calls,
              isWatched ? "" : " (not watched)", grown);
  std::fflush(stdout);
  // Ten million that took a byte each would take 1,200 pages.
  const bool isQuiet =
      allocations == 0 && locks == 0 && calls == 0 && grown < 16;
  _exit(isQuiet && isRight ? 0 : 1);
}

int writeBundle(const char *path, int64_t nodes) {
  constexpr int64_t size = 64;
  mgt::Builder builder("large", 4);
  const auto x = builder.argument("x", {size}), y = builder.result("y", {size});
  const mgt_kernel bump = bumpOf(builder);
  std::vector<mgt::View> parts;
  for (int32_t d = 0; d < 4; ++d) {
    parts.push_back(builder.temporary("a", d, {size}));
    builder.copy(parts.back(), x);
  }
  int64_t made = 4;
  for (; made < nodes - 1; ++made) {
    if (made % 100 == 0)
      builder.allReduce(parts, MGT_MAX);
    else
      builder.launch(bump, int32_t(made % 4), {1},
                     {mgt::update(parts[size_t(made % 4)])});
  }
  builder.copy(y, parts[0]);
  mgt_save_options options{};
  options.size = sizeof options;
  options.cpu = "x86-64-v2";
  builder.save(path, &options);
  return 0;
}

int cold(const char *path) {
  const double start = now();
  mgt::Program program(path, "host:4");
  const double opened = now();
  program.write("x", std::vector<float>(64, 1));
  program.load();
  program.replay();
  const double done = now();
  std::printf("opened in %.1f ms, loaded and replayed once in %.1f ms; %.1f "
              "ms of CPU since the process began\n",
              1e3 * (opened - start), 1e3 * (done - opened),
              1e3 * double(std::clock()) / CLOCKS_PER_SEC);
  return 0;
}

} // namespace

int main(int argc, char **argv) try {
  const std::string what = argc > 2 ? argv[1] : "";
  if (what == "replays")
    return replays(std::strtoull(argv[2], nullptr, 10));
  if (what == "bundle" && argc > 3)
    return writeBundle(argv[2], std::atoll(argv[3]));
  if (what == "cold")
    return cold(argv[2]);
  return std::fprintf(stderr, "usage: embed_costs replays COUNT | bundle FILE "
                              "NODES | cold FILE\n"),
         2;
} catch (const mgt::Error &error) {
  return std::fprintf(stderr, "%s\n", error.what()), error.status;
}

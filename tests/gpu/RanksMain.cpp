// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NCCL's collectives captured into graphs, a process for each rank:
//   gpu-ranks 1       one rank on GPU 0
//   gpu-ranks N       N ranks on GPUs 0 to N - 1
//   gpu-ranks N one   N ranks on GPU 0, which NCCL 2.30 and later may allow
//   gpu-ranks N die   the last of N ranks ends before the second replay; the
//                     others must say so within the deadline
// Exit code 77, which ctest counts as skipped, where there are too few GPUs,
// no NCCL or one too old; with MGPU_REQUIRE_GPU in the environment only for too
// few GPUs and too old an NCCL. A program of its own, because CUDA may not be
// called before a fork.
#include "capture/ranks/RankMemory.h"
#include "device/cuda/CudaDriver.h"
#include "device/cuda/api/Libraries.h"
#include "tests/gpu/GpuTarget.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace mgpu;
using namespace mgpu::device;

constexpr int skipped = 77;
constexpr int64_t count = 1000; ///< elements of a slice

struct Shared {
  capture::SharedControl control;
  GroupId id;
};

/// The k-th integer of rank r's memory; sums of them are exact.
float valueOf(uint32_t rank, int64_t k) {
  return float((k * 31 + rank * 7) % 61) - 30;
}

/// What each kind leaves in element k of rank r's 4 * count floats from
/// `ranks * count` on.
float expectedOf(CollectiveKind kind, uint32_t ranks, uint32_t rank,
                 int64_t k) {
  const int64_t slice = k / count, at = k % count;
  float sum = 0;
  switch (kind) {
  case CollectiveKind::AllReduce:
    for (uint32_t r = 0; r < ranks; ++r)
      sum += valueOf(r, k);
    return sum;
  case CollectiveKind::ReduceScatter:
    for (uint32_t r = 0; r < ranks; ++r)
      sum += valueOf(r, int64_t(rank) * count + at);
    return sum;
  case CollectiveKind::AllGather:
    return valueOf(uint32_t(slice), at);
  case CollectiveKind::AllToAll:
    return valueOf(uint32_t(slice), int64_t(rank) * count + at);
  case CollectiveKind::Permute: // a shift by one
    return rank == 0 ? 0 : valueOf(rank - 1, at);
  default: // Broadcast from the last
    return valueOf(ranks - 1, at);
  }
}

Result<void> checkKind(Driver &driver, CollectiveKind kind, uint32_t ranks,
                       uint32_t rank, std::byte *memory, float *host,
                       const std::function<void()> &beforeSecond) {
  const bool sendsAll =
      kind == CollectiveKind::AllToAll || kind == CollectiveKind::ReduceScatter;
  const bool receivesAll =
      kind == CollectiveKind::AllToAll || kind == CollectiveKind::AllGather;
  const int64_t sent = count * (sendsAll ? ranks : 1);
  const int64_t received = count * (receivesAll ? ranks : 1);
  const int64_t half = int64_t(ranks) * count * 4; ///< bytes
  CollectiveNodeParams params;
  params.name = std::string(toString(kind));
  params.kind = kind;
  params.root = ranks - 1;
  if (kind == CollectiveKind::Permute)
    for (uint32_t r = 0; r + 1 < ranks; ++r)
      params.pairs.push_back({r, r + 1});
  for (uint32_t r = 0; r < ranks; ++r)
    params.members.push_back({{int32_t(r)},
                              r == rank ? memory : nullptr,
                              r == rank ? memory : nullptr,
                              {0, {sent}, {4}, 4},
                              {half, {received}, {4}, 4}});
  const DeviceId device{int32_t(rank)};
  Box all = Box::flat(0, 2 * half);
  auto graph = driver.createGraph();
  auto *bytes = reinterpret_cast<std::byte *>(host);
  MGPU_TRY_ASSIGN(GraphNodeId up,
                  graph->addCopy({"up", device, memory, bytes, all, all}, {}));
  MGPU_TRY_ASSIGN(GraphNodeId made, graph->addCollective(params, {{up}}));
  MGPU_TRY(graph->addCopy({"down", device, bytes, memory, all, all}, {{made}}));
  MGPU_TRY_ASSIGN(auto exec, graph->instantiate());
  for (int replay = 0; replay < 100; ++replay) {
    if (replay == 1)
      beforeSecond();
    for (int64_t k = 0; k < 2 * ranks * count; ++k)
      host[k] = k < int64_t(ranks) * count ? valueOf(rank, k) : -1;
    MGPU_TRY(exec->launch());
    for (int64_t k = 0; k < received; ++k)
      if (float got = host[int64_t(ranks) * count + k];
          got != expectedOf(kind, ranks, rank, k))
        return fail(ErrorKind::Invalid,
                    fmt::format("{} of {} ranks, replay {}: element {} of rank "
                                "{} is {}, not {}",
                                toString(kind), ranks, replay, k, rank, got,
                                expectedOf(kind, ranks, rank, k)));
  }
  std::vector<NodeTiming> timings;
  return exec->launchTimed(timings);
}

Result<void> runRank(uint32_t ranks, uint32_t rank, int gpu, bool dies,
                     Shared &shared) {
  setenv("NCCL_GRAPH_MIXING_SUPPORT", "0", 1);
  CudaOptions options;
  options.gpu = gpu;
  options.only = DeviceId{int32_t(rank)};
  options.deadline = std::chrono::seconds(dies ? 10 : 60);
  options.compile = [](auto &...args) {
    return kernels::compileCubin(args...);
  };
  options.watch = [&] { return shared.control.watch(rank); };
  MGPU_TRY_ASSIGN(auto driver, createCudaDriver(options));
  DeviceGroup group;
  for (uint32_t r = 0; r < ranks; ++r)
    group.members.push_back({int32_t(r)});
  auto meet = [&] {
    return shared.control.meet(rank, ranks, std::chrono::seconds(60));
  };
  if (rank == 0) {
    MGPU_TRY_ASSIGN(shared.id, driver->makeGroupId());
  }
  MGPU_TRY(meet());
  group.id = shared.id;
  MGPU_TRY(driver->join({&group, 1}));
  const uint64_t bytes = 8 * ranks * count;
  MGPU_TRY_ASSIGN(std::byte * memory, driver->allocate({int32_t(rank)}, bytes));
  MGPU_TRY_ASSIGN(std::byte * host, driver->allocate(DeviceId::host(), bytes));
  for (CollectiveKind kind :
       {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter,
        CollectiveKind::AllGather, CollectiveKind::AllToAll,
        CollectiveKind::Broadcast, CollectiveKind::Permute}) {
    MGPU_TRY(meet());
    MGPU_TRY(checkKind(*driver, kind, ranks, rank, memory,
                       reinterpret_cast<float *>(host), [&] {
                         if (dies && rank + 1 == ranks)
                           _exit(0);
                       }));
  }
  return {};
}

} // namespace

int main(int argc, char **argv) {
  const uint32_t ranks = argc > 1 ? uint32_t(std::atoi(argv[1])) : 0;
  const std::string how = argc > 2 ? argv[2] : "";
  if (ranks < 1 || ranks > 8)
    return 2;
  const bool onOne = how == "one", dies = how == "die";
  // Asked in a process of its own: this one is forked below.
  pid_t asker = fork();
  if (asker == 0) {
    auto machine = inspectCuda();
    auto nccl = findNccl();
    if (!machine || !nccl) {
      std::fprintf(stderr, "%s\n",
                   (machine ? nccl.error() : machine.error()).message.c_str());
      _exit(std::getenv("MGPU_REQUIRE_GPU") ? 1 : skipped);
    }
    int major = 0, minor = 0;
    std::sscanf(nccl->version.c_str(), "%d.%d", &major, &minor);
    bool isTooOld = onOne && major * 100 + minor < 230;
    bool areTooFew = !onOne && machine->gpus.size() < ranks;
    if (isTooOld || areTooFew)
      std::fprintf(stderr, "skipped: %zu GPUs, NCCL %s\n", machine->gpus.size(),
                   nccl->version.c_str());
    _exit(isTooOld || areTooFew ? skipped : 0);
  }
  int status = 0;
  waitpid(asker, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  if (onOne)
    setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
  auto memory = capture::SharedMemory::make(sizeof(Shared));
  if (!memory)
    return 1;
  auto &shared = *reinterpret_cast<Shared *>(memory->bytes().data());
  std::vector<pid_t> children;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    pid_t child = fork();
    if (child == 0) {
      alarm(120);
      Result<void> ran =
          runRank(ranks, rank, onOne ? 0 : int(rank), dies, shared);
      if (!ran)
        std::fprintf(stderr, "rank %u: %s\n", rank,
                     ran.error().message.c_str());
      // A rank that outlives a dead one must have said so.
      _exit(bool(ran) != dies ? 0 : 1);
    }
    children.push_back(child);
  }
  int code = 0;
  for (pid_t child : children) {
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
      code = 1;
  }
  return code;
}

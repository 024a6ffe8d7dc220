// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives of a host target in several processes beside the same calls of
// MPI bare, and what a replay pays for the processes to meet.
// Usage: mpirun -n N bench-ranks-openmpi | bench-ranks-mpich [SECONDS]
// SECONDS are for each figure of each side, 0.2 where not given.
#include "device/host/HostDriver.h"
#include "pipeline/target/TheRanks.h"
#include "support/Clock.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <functional>
#include <mpi.h>

using namespace mgpu;
using namespace mgpu::device;

namespace {

constexpr uint64_t mostBytes = uint64_t(4) << 20;

struct Bench {
  MessageRendezvous &others;
  Driver &driver;
  MPI_Comm bare;
  int rank = 0, count = 0;
  double seconds = 0.2;
  std::byte *send = nullptr, *recv = nullptr; ///< of mostBytes
};

using Call = std::function<Result<void>()>;

/// The microseconds of one call, of the slowest rank, in the fastest of many
/// samples of several calls that all ranks begin together. Other processes on
/// the cores of one rank hold up all, and a median is then theirs.
Result<double> usOf(const Bench &bench, const Call &call) {
  uint64_t calls = 1;
  std::vector<double> samples;
  const Clock::time_point start = Clock::now();
  for (double passed = 0; samples.size() < 5 || passed < bench.seconds;) {
    MGPU_TRY(bench.others.meet());
    const Clock::time_point begin = Clock::now();
    for (uint64_t k = 0; k < calls; ++k)
      MGPU_TRY(call());
    MGPU_TRY_ASSIGN(const double us,
                    bench.others.largest(microsecondsSince(begin)));
    MGPU_TRY_ASSIGN(passed, bench.others.largest(secondsSince(start)));
    if (us < 500 && samples.empty()) {
      calls *= 2; // warms up as well
      continue;
    }
    samples.push_back(us / double(calls));
  }
  return std::ranges::min(samples);
}

/// Bytes of one side, as MPI counts them.
struct Sizes {
  uint64_t all, slice;
};

Result<std::unique_ptr<GraphExec>> graphOf(const Bench &bench,
                                           CollectiveKind kind, Sizes sizes) {
  CollectiveNodeParams params;
  params.name = std::string(toString(kind));
  params.kind = kind;
  params.elementType = ElementType::F32;
  const int members = kind == CollectiveKind::SendRecv ? 2 : bench.count;
  auto box = [](uint64_t bytes) {
    Box out = Box::flat(0, int64_t(bytes / 4));
    out.elementBytes = 4;
    out.strides = {4};
    return out;
  };
  const bool gathers = kind == CollectiveKind::AllGather;
  const bool scatters = kind == CollectiveKind::ReduceScatter;
  for (int k = 0; k < members; ++k) {
    const bool isHere = k == bench.rank;
    std::byte *send = // MPI_Bcast has one buffer
        kind == CollectiveKind::Broadcast ? bench.recv : bench.send;
    params.members.push_back({DeviceId{k}, isHere ? send : nullptr,
                              isHere ? bench.recv : nullptr,
                              box(gathers ? sizes.slice : sizes.all),
                              box(scatters ? sizes.slice : sizes.all)});
  }
  if (bench.rank >= members)
    return std::unique_ptr<GraphExec>();
  auto graph = bench.driver.createGraph();
  MGPU_TRY(graph->addCollective(params, {}));
  return graph->instantiate();
}

/// Makes the call by MPI alone.
void callBare(const Bench &bench, CollectiveKind kind, Sizes sizes) {
  const int all = int(sizes.all / 4), slice = int(sizes.slice / 4);
  switch (kind) {
  case CollectiveKind::AllReduce:
    MPI_Allreduce(bench.send, bench.recv, all, MPI_FLOAT, MPI_SUM, bench.bare);
    return;
  case CollectiveKind::AllGather:
    MPI_Allgather(bench.send, slice, MPI_FLOAT, bench.recv, slice, MPI_FLOAT,
                  bench.bare);
    return;
  case CollectiveKind::ReduceScatter:
    MPI_Reduce_scatter_block(bench.send, bench.recv, slice, MPI_FLOAT, MPI_SUM,
                             bench.bare);
    return;
  case CollectiveKind::AllToAll:
    MPI_Alltoall(bench.send, slice, MPI_FLOAT, bench.recv, slice, MPI_FLOAT,
                 bench.bare);
    return;
  case CollectiveKind::Broadcast:
    MPI_Bcast(bench.recv, all, MPI_FLOAT, 0, bench.bare);
    return;
  default: // SendRecv
    if (bench.rank == 0)
      MPI_Send(bench.send, all, MPI_FLOAT, 1, 0, bench.bare);
    if (bench.rank == 1)
      MPI_Recv(bench.recv, all, MPI_FLOAT, 0, 0, bench.bare, MPI_STATUS_IGNORE);
  }
}

Result<void> compare(const Bench &bench, CollectiveKind kind, uint64_t bytes) {
  Sizes sizes{bytes, 0};
  sizes.slice = bytes / (4 * uint64_t(bench.count)) * 4;
  sizes.all = sizes.slice * uint64_t(bench.count);
  MGPU_TRY_ASSIGN(auto graph, graphOf(bench, kind, sizes));
  MGPU_TRY_ASSIGN(const double ours, usOf(bench, [&]() -> Result<void> {
                    return graph ? graph->launch() : Result<void>();
                  }));
  MGPU_TRY_ASSIGN(const double bare, usOf(bench, [&]() -> Result<void> {
                    callBare(bench, kind, sizes);
                    return {};
                  }));
  if (bench.rank == 0)
    fmt::print("{:<15} {:>9} {:>12.2f} {:>12.2f} {:>7.2f} {:>10.2f}\n",
               toString(kind), sizes.all, bare, ours, ours / bare,
               double(sizes.all) / ours / 1e3);
  std::fflush(stdout);
  return {};
}

Result<void> run(Bench &bench) {
  const DeviceId here{bench.rank};
  MGPU_TRY_ASSIGN(bench.send, bench.driver.allocate(here, mostBytes));
  MGPU_TRY_ASSIGN(bench.recv, bench.driver.allocate(here, mostBytes));
  if (bench.rank == 0)
    fmt::print("{} ranks, {}\n{:<15} {:>9} {:>12} {:>12} {:>7} {:>10}\n",
               bench.count, bench.others.library(), "collective", "bytes",
               "bare us", "mgpu us", "ratio", "mgpu GB/s");
  for (CollectiveKind kind :
       {CollectiveKind::SendRecv, CollectiveKind::AllReduce,
        CollectiveKind::AllGather, CollectiveKind::ReduceScatter,
        CollectiveKind::AllToAll, CollectiveKind::Broadcast})
    for (uint64_t bytes = 64; bytes <= mostBytes; bytes *= 4)
      if (bytes >= 4 * uint64_t(bench.count))
        MGPU_TRY(compare(bench, kind, bytes));
  MGPU_TRY_ASSIGN(const double barrier, usOf(bench, [&]() -> Result<void> {
                    MPI_Barrier(bench.bare);
                    return {};
                  }));
  MGPU_TRY_ASSIGN(const double meets,
                  usOf(bench, [&] { return bench.others.meet(); }));
  const double mine = 1;
  MGPU_TRY_ASSIGN(
      const double tells, usOf(bench, [&]() -> Result<void> {
        MGPU_TRY(bench.others.exchange(std::as_bytes(std::span(&mine, 1))));
        return {};
      }));
  if (bench.rank == 0)
    fmt::print("a replay by itself meets before it ({:.2f} us; MPI_Barrier "
               "bare {:.2f} us) and tells its time after it ({:.2f} us)\n",
               meets, barrier, tells);
  return {};
}

Result<void> benchRanks(double seconds, MPI_Comm bare) {
  MGPU_TRY_ASSIGN(auto others, pipeline::meetRanks({.how = MGPU_BENCH_MPI}));
  MGPU_TRY_ASSIGN(auto driver,
                  createHostDriver(hostPart(others->count(), *others), 1));
  Bench bench{*others, *driver, bare};
  bench.rank = int(others->rank());
  bench.count = int(others->count());
  bench.seconds = seconds;
  auto done = run(bench);
  if (!done)
    others->abort(done.error().message);
  return done;
}

} // namespace

int main(int argc, char **argv) {
  int level = 0, count = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  MPI_Comm bare = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &bare);
  MPI_Comm_size(bare, &count);
  if (count < 2) {
    std::fprintf(stderr, "start it by mpirun -n 2 or more\n");
    return 2;
  }
  auto done = benchRanks(argc > 1 ? std::atof(argv[1]) : 0.2, bare);
  if (!done) {
    std::fprintf(stderr, "%s\n", done.error().message.c_str());
    return 1;
  }
  MPI_Comm_free(&bare);
  MPI_Finalize();
  return 0;
}

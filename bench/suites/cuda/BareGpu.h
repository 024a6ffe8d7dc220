// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_BENCH_SUITES_CUDA_BAREGPU_H
#define MGPU_BENCH_SUITES_CUDA_BAREGPU_H

// GPU 0 by the driver's own calls, as a program uses it that knows CUDA and
// nothing of us. Our replays are compared with it.

#include "device/cuda/api/CudaApi.h"

#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace mgpu::bench {

/// One launch: a block of one thread, whose parameters are these bytes.
struct BareLaunch {
  std::vector<std::byte> parameters;
  std::vector<uint32_t> offsets; ///< where each begins
};

/// Wall and this thread's processor time, in microseconds.
struct CallCost {
  double wallUs = 0, cpuUs = 0;
};
/// Reads both clocks.
CallCost costNow();
inline CallCost operator-(CallCost a, CallCost b) {
  return {a.wallUs - b.wallUs, a.cpuUs - b.cpuUs};
}

/// The GPU's primary context, which every program of a process shares, and
/// what was made in it. Handles are the driver's own.
class BareGpu {
public:
  static Result<std::unique_ptr<BareGpu>> open();
  ~BareGpu();

  Result<CUkernel> load(std::span<const std::byte> cubin, const char *entry);

  /// A graph of `launches`, by number; `edges` are (from, to).
  struct Graph {
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
  };
  Result<Graph> makeGraph(CUkernel kernel, std::span<const BareLaunch> launches,
                          std::span<const std::pair<uint32_t, uint32_t>> edges);
  void destroy(Graph &graph);
  /// Launches and polls until the stream is idle; `launchUs` is what the first
  /// call alone took.
  Result<CallCost> replay(const Graph &graph, double &launchUs);

  /// The microseconds by events between which the launches were put on one
  /// stream, in order.
  Result<double> spanInStream(CUkernel kernel,
                              std::span<const BareLaunch> launches);
  /// Launches on `numStreams` streams in turn, with an event behind each launch
  /// that another stream waits for.
  Result<double>
  spanInStreams(CUkernel kernel, std::span<const BareLaunch> launches,
                std::span<const std::pair<uint32_t, uint32_t>> edges,
                uint32_t numStreams);
  /// The microseconds of one of `count` copies of `bytes` within the GPU, one
  /// after the other.
  Result<double> copyUs(CUdeviceptr to, CUdeviceptr from, uint64_t bytes,
                        uint32_t count);

  /// The microseconds by events of what `issue` puts on the stream.
  Result<double> spanOf(const std::function<Result<void>(CUstream)> &issue);

  Result<uint64_t> freeBytes();

private:
  BareGpu() = default;
  Result<void> check(CUresult code, const char *call) const;
  Result<void> drain(CUstream of);
  Result<CUevent> event(size_t number);
  Result<double> betweenBorders();

  std::shared_ptr<const device::CudaApi> api;
  PFN_cuLaunchKernel_v4000 launchKernel = nullptr;
  PFN_cuStreamWaitEvent_v3020 waitEvent = nullptr;
  PFN_cuMemcpyDtoDAsync_v3020 copyAsync = nullptr;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUevent borders[2] = {};
  std::vector<CUevent> events; ///< without times
  std::vector<CUstream> streams;
  std::vector<CUlibrary> libraries;
};

} // namespace mgpu::bench

#endif // MGPU_BENCH_SUITES_CUDA_BAREGPU_H

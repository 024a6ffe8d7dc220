// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_GRAPH_CUDAEXEC_H
#define MGPU_DEVICE_CUDA_GRAPH_CUDAEXEC_H

#include "device/cuda/graph/GraphInstance.h"

#include <atomic>

namespace mgpu::device {

/// A phase on a GPU: its graph, and the same graph made for timing when times
/// are first asked for.
class CudaExec final : public GraphExec {
public:
  static Result<std::unique_ptr<GraphExec>>
  create(std::shared_ptr<CudaState> state,
         std::shared_ptr<const GraphSpec> spec);

  /// False: the two differ in more than CUDA changes in an executable.
  Result<bool> update(std::shared_ptr<const GraphSpec> next);
  bool isOf(const CudaState &other) const { return state.get() == &other; }

  Result<void> launch() override;
  Result<void> enqueue(void *stream,
                       std::span<const HostValue> values) override;
  Result<void> captureInto(void *stream) override;
  Result<void> launchNext(std::span<const HostValue> values) override;
  Result<void> launchTimed(std::vector<NodeTiming> &timings) override;
  std::vector<HostSpan> hostSpans() const override;
  Result<std::optional<double>> launchSpan() override;

private:
  Result<std::vector<NodeTiming>> launchRecorded(CuptiSession &cupti);

  CudaExec(std::shared_ptr<CudaState> state,
           std::shared_ptr<const GraphSpec> spec)
      : state(state), spec(std::move(spec)), plain(std::move(state)) {}

  std::shared_ptr<CudaState> state;
  std::shared_ptr<const GraphSpec> spec;
  GraphInstance plain;
  /// Made when first asked for: with events, or for CUPTI.
  std::unique_ptr<GraphInstance> timed, recorded;
  const GraphInstance *lastTimed = nullptr;
  std::atomic<bool> running{false};
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_GRAPH_CUDAEXEC_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/graph/CudaExec.h"

namespace mgpu::device {

Result<std::unique_ptr<GraphExec>>
CudaExec::create(std::shared_ptr<CudaState> state,
                 std::shared_ptr<const GraphSpec> spec) {
  std::unique_ptr<CudaExec> exec(
      new CudaExec(std::move(state), std::move(spec)));
  // A phase may have nothing to do; what CUDA makes of that is not asked.
  if (!exec->spec->nodes.empty())
    MGPU_TRY(exec->plain.build(*exec->spec, false));
  return std::unique_ptr<GraphExec>(std::move(exec));
}

/// Holds a flag for a scope, if it was free.
namespace {
class Claim {
public:
  explicit Claim(std::atomic<bool> &flag)
      : flag(flag), owned(!flag.exchange(true, std::memory_order_acquire)) {}
  ~Claim() {
    if (owned)
      flag.store(false, std::memory_order_release);
  }
  Claim(const Claim &) = delete;
  Claim &operator=(const Claim &) = delete;
  Result<void> check() const {
    if (owned)
      return {};
    return fail(ErrorKind::Usage,
                "this graph is being replayed already: one replay of a graph "
                "at a time");
  }

private:
  std::atomic<bool> &flag;
  bool owned;
};
} // namespace

Result<bool> CudaExec::update(std::shared_ptr<const GraphSpec> next) {
  Claim claim(running);
  MGPU_TRY(claim.check());
  if (!isUpdatable(*spec, *next))
    return false;
  if (!spec->nodes.empty())
    MGPU_TRY(plain.update(*spec, *next));
  // Graphs for timing are made anew when they are asked for.
  timed.reset();
  recorded.reset();
  lastTimed = nullptr;
  spec = std::move(next);
  return true;
}

Result<void> CudaExec::launch() {
  Claim claim(running);
  MGPU_TRY(claim.check());
  MGPU_TRY(state->checkAlive());
  if (spec->nodes.empty())
    return {};
  return plain.run(*spec);
}

Result<void> CudaExec::enqueue(void *stream,
                               std::span<const HostValue> values) {
  Claim claim(running);
  MGPU_TRY(claim.check());
  MGPU_TRY(state->checkAlive());
  if (spec->nodes.empty())
    return {};
  return state->queue(static_cast<CUstream>(stream), plain.executable(),
                      values);
}

Result<void> CudaExec::captureInto(void *stream) {
  Claim claim(running);
  MGPU_TRY(claim.check());
  MGPU_TRY(state->checkAlive());
  if (spec->nodes.empty())
    return {};
  // A graph anew: that of `plain` does not know what update() changed.
  return captureAsChild(state, static_cast<CUstream>(stream), *spec);
}

Result<void> CudaExec::launchNext(std::span<const HostValue> values) {
  Claim claim(running);
  MGPU_TRY(claim.check());
  MGPU_TRY(state->checkAlive());
  if (spec->nodes.empty())
    return {};
  return state->queueNext(plain.executable(), values);
}

Result<void> CudaExec::launchTimed(std::vector<NodeTiming> &timings) {
  Claim claim(running);
  MGPU_TRY(claim.check());
  MGPU_TRY(state->checkAlive());
  timings.clear();
  if (spec->nodes.empty())
    return {};
  lastTimed = nullptr;
  if (state->cupti()) {
    // Where CUPTI fails for once it would again, and times of two sorts are not
    // to be compared: from then on events.
    Result<std::vector<NodeTiming>> times = launchRecorded(*state->cupti());
    if (times) {
      timings = std::move(*times);
      lastTimed = recorded.get();
      return {};
    }
    MGPU_TRY(state->checkAlive());
    state->giveUpCupti(times.error().message);
  }
  state->sayEvents();
  if (!timed) {
    auto instance = std::make_unique<GraphInstance>(state);
    MGPU_TRY(instance->build(*spec, true));
    timed = std::move(instance);
  }
  MGPU_TRY(timed->run(*spec));
  MGPU_TRY_ASSIGN(timings, timed->timings(*spec));
  lastTimed = timed.get();
  return {};
}

Result<std::vector<NodeTiming>> CudaExec::launchRecorded(CuptiSession &cupti) {
  MGPU_TRY(cupti.traceNodes());
  if (!recorded) {
    // Made anew: CUPTI need not know the nodes of graphs instantiated before.
    auto instance = std::make_unique<GraphInstance>(state);
    MGPU_TRY(instance->build(*spec, false, &cupti));
    recorded = std::move(instance);
  }
  return recorded->runRecorded(*spec, cupti);
}

std::vector<HostSpan> CudaExec::hostSpans() const {
  return lastTimed ? lastTimed->hostSpans() : std::vector<HostSpan>();
}

Result<std::optional<double>> CudaExec::launchSpan() {
  Claim claim(running);
  MGPU_TRY(claim.check());
  MGPU_TRY(state->checkAlive());
  if (spec->nodes.empty())
    return std::optional<double>(0.0);
  MGPU_TRY_ASSIGN(double us, plain.runSpan(*spec));
  return std::optional<double>(us);
}

} // namespace mgpu::device

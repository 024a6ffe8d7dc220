// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/serve/StepThread.h"

#include "support/SharedLibrary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

namespace mgpu::pipeline::serve {

const Nvtx &Nvtx::get() {
  static const Nvtx found = [] {
    Nvtx out;
    const SharedLibrary library = openToolkitLibrary(
        {"libnvToolsExt.so.1", "libnvtx3interop.so.1", "libnvtx3interop.so"});
    if (!library.handle)
      return out;
    EntryPoints points(library.handle);
    points.take("nvtxRangePushA", out.push);
    points.take("nvtxRangePop", out.pop);
    return points.missing.empty() ? out : Nvtx();
  }();
  return found;
}

NodeWatch::NodeWatch(const planner::Dag &dag, bool marks) {
  names.reserve(dag.nodes.size());
  for (const planner::DagNode &node : dag.nodes)
    names.push_back(node.name);
  if (marks)
    nvtx = Nvtx::get();
}

bool NodeWatch::begin(planner::NodeId node, uint32_t queue) {
  if (isStopped.load(std::memory_order_relaxed))
    return false;
  current[queue % current.size()].store(node.value + 1,
                                        std::memory_order_relaxed);
  if (nvtx.push)
    nvtx.push(names[node.value].c_str());
  return true;
}

void NodeWatch::end(planner::NodeId, uint32_t queue) {
  if (nvtx.push)
    nvtx.pop();
  current[queue % current.size()].store(0, std::memory_order_relaxed);
}

std::string NodeWatch::running() const {
  std::vector<std::string> quoted;
  for (const auto &each : current)
    if (const uint32_t node = each.load(std::memory_order_relaxed))
      quoted.push_back(fmt::format("'{}'", names[node - 1]));
  if (quoted.empty())
    return "no node";
  return fmt::format("node{} {}", quoted.size() == 1 ? "" : "s",
                     fmt::join(quoted, ", "));
}

Result<void> runStep(capture::Runner &runner, Step step, double &us,
                     std::vector<capture::TimedReplay> &timed) {
  switch (step) {
  case Step::Load:
    MGPU_TRY(runner.load());
    return runner.shareReads();
  case Step::Replay:
    return runner.replay({&us, 1});
  case Step::Fetch:
    return runner.fetch();
  case Step::TimedReplay:
    break;
  }
  MGPU_TRY_ASSIGN(timed, runner.replayTimed());
  return {};
}

/// Belongs to the caller and the thread, and is kept by both.
struct StepThread::Shared {
  explicit Shared(capture::Runner &runner) : runner(runner) {}
  enum class State : uint8_t { Idle, Asked, Done, Leaving };

  void serve() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] {
        return state == State::Asked || state == State::Leaving;
      });
      if (state == State::Leaving)
        break;
      lock.unlock();
      Result<void> ended;
      try {
        ended = runStep(runner, step, us, timed);
      } catch (const std::exception &error) {
        ended = fail(ErrorKind::Absent, error.what());
      }
      lock.lock();
      result = std::move(ended);
      if (state == State::Leaving) // it was late, and nobody asks any more
        break;
      state = State::Done;
      changed.notify_all();
    }
    const auto last = std::exchange(kept, {}); // goes without the lock
    lock.unlock();
  }

  capture::Runner &runner;
  std::mutex mutex;
  std::condition_variable changed;
  State state = State::Idle;
  Step step = Step::Load;
  double us = 0;
  std::vector<capture::TimedReplay> timed;
  Result<void> result;
  std::vector<std::shared_ptr<void>> kept;
};

StepThread::StepThread(std::shared_ptr<void> owner, capture::Runner &runner,
                       std::shared_ptr<NodeWatch> watch,
                       std::chrono::milliseconds deadline)
    : shared(std::make_shared<Shared>(runner)), watch(std::move(watch)),
      deadline(deadline) {
  shared->kept = {std::move(owner), this->watch};
  thread = std::thread([shared = shared] { shared->serve(); });
}

StepThread::~StepThread() {
  {
    const std::lock_guard lock(shared->mutex);
    shared->state = Shared::State::Leaving;
    shared->changed.notify_all();
  }
  if (late)
    thread.detach();
  else
    thread.join();
}

void StepThread::keep(std::shared_ptr<void> owner) {
  const std::lock_guard lock(shared->mutex);
  if (!shared->kept.empty()) // else it has ended
    shared->kept.push_back(std::move(owner));
}

void StepThread::begin(Step step) {
  const std::lock_guard lock(shared->mutex);
  begun = std::chrono::steady_clock::now();
  shared->step = step;
  shared->state = Shared::State::Asked;
  shared->changed.notify_all();
}

Result<void> StepThread::wait(double &us,
                              std::vector<capture::TimedReplay> &timed) {
  std::unique_lock lock(shared->mutex);
  const auto isDone = [&] { return shared->state == Shared::State::Done; };
  if (deadline.count() == 0)
    shared->changed.wait(lock, isDone);
  else if (!shared->changed.wait_until(lock, begun + deadline, isDone)) {
    late = true;
    const std::string running = watch->running();
    watch->stop();
    shared->state = Shared::State::Leaving;
    return fail(ErrorKind::Absent,
                fmt::format("it has not ended within {} ms: {} still runs; its "
                            "threads end at their next node, and keep the "
                            "program's memory until then",
                            deadline.count(), running));
  }
  shared->state = Shared::State::Idle;
  us = shared->us;
  timed = std::move(shared->timed);
  return std::exchange(shared->result, {});
}

} // namespace mgpu::pipeline::serve

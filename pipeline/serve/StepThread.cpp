// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/serve/StepThread.h"

#include <condition_variable>
#include <exception>
#include <fmt/format.h>
#include <mutex>
#include <utility>

namespace mgpu::pipeline::serve {

Result<void> runStep(capture::Runner &runner, Step step, double &us,
                     std::vector<capture::TimedReplay> &timed) {
  switch (step) {
  case Step::Load:
    return runner.load();
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

Result<void> StepThread::run(Step step, double &us,
                             std::vector<capture::TimedReplay> &timed) {
  std::unique_lock lock(shared->mutex);
  shared->step = step;
  shared->state = Shared::State::Asked;
  shared->changed.notify_all();
  if (!shared->changed.wait_for(lock, deadline, [&] {
        return shared->state == Shared::State::Done;
      })) {
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

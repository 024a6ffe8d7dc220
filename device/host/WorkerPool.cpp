// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/host/WorkerPool.h"

#include "support/Affinity.h"
#include "support/Assert.h"

#include <linux/futex.h>

#include <algorithm>
#include <climits>
#include <ctime>
#include <functional>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace mgpu::device {

namespace {

/// For a node: how many ops of each queue have finished once it has.
using Clocks = std::vector<uint32_t>;

/// A wait still expressed as a node of the other queue.
struct NodeWait {
  uint32_t waiter, awaited;
};

/// The cross-queue waits left after dropping all that are implied, in node
/// order. A wait is implied when a queue predecessor or a later-created
/// dependency already carries it.
std::vector<NodeWait> reduceWaits(std::span<const ProgramNode> nodes,
                                  std::span<const uint32_t> positions,
                                  uint32_t numQueues) {
  Clocks clocks(nodes.size() * numQueues, 0),
      queueClock(numQueues * numQueues, 0);
  std::vector<NodeWait> waits;
  std::vector<uint32_t> dependencies;
  for (uint32_t id = 0; id < nodes.size(); ++id) {
    const ProgramNode &node = nodes[id];
    uint32_t *now = &queueClock[size_t(node.queue) * numQueues];
    dependencies = node.dependencies;
    std::sort(dependencies.begin(), dependencies.end(), std::greater<>());
    for (uint32_t dependency : dependencies) {
      uint32_t queue = nodes[dependency].queue;
      if (queue == node.queue || now[queue] > positions[dependency])
        continue;
      waits.push_back({id, dependency});
      const uint32_t *theirs = &clocks[size_t(dependency) * numQueues];
      for (uint32_t k = 0; k < numQueues; ++k)
        now[k] = std::max(now[k], theirs[k]);
    }
    now[node.queue] = positions[id] + 1;
    std::copy_n(now, numQueues, &clocks[size_t(id) * numQueues]);
  }
  return waits;
}

} // namespace

WorkerProgram buildProgram(std::span<const ProgramNode> nodes,
                           uint32_t numQueues) {
  WorkerProgram program;
  program.queues.resize(numQueues);
  std::vector<uint32_t> positions;
  positions.reserve(nodes.size());
  program.serial.reserve(nodes.size());
  for (uint32_t id = 0; id < nodes.size(); ++id) {
    WorkerQueue &queue = program.queues[nodes[id].queue];
    positions.push_back(uint32_t(queue.ops.size()));
    queue.ops.push_back(nodes[id].op);
    queue.nodes.push_back(id);
    program.serial.push_back(nodes[id].op);
  }
  for (const WorkerQueue &queue : program.queues)
    program.numActive += !queue.ops.empty();

  std::vector<NodeWait> waits = reduceWaits(nodes, positions, numQueues);
  // Who publishes: awaited nodes, and the last of each queue the caller awaits.
  std::vector<uint32_t> ordinals(nodes.size(), 0);
  for (const NodeWait &wait : waits)
    ordinals[wait.awaited] = 1;
  for (uint32_t k = 1; k < numQueues; ++k)
    if (!program.queues[k].nodes.empty())
      ordinals[program.queues[k].nodes.back()] = 1;
  std::vector<uint32_t> published(numQueues, 0);
  for (uint32_t id = 0; id < nodes.size(); ++id)
    if (ordinals[id])
      ordinals[id] = ++published[nodes[id].queue];

  auto nextWait = waits.begin();
  for (uint32_t id = 0; id < nodes.size(); ++id) {
    WorkerQueue &queue = program.queues[nodes[id].queue];
    bool waitsHere = nextWait != waits.end() && nextWait->waiter == id;
    bool fresh = queue.segments.empty() || queue.segments.back().publishes;
    for (; nextWait != waits.end() && nextWait->waiter == id; ++nextWait)
      queue.waits.push_back(
          {nodes[nextWait->awaited].queue, ordinals[nextWait->awaited]});
    if (fresh || waitsHere)
      queue.segments.push_back({});
    Segment &segment = queue.segments.back();
    segment.waitEnd = uint32_t(queue.waits.size());
    segment.opEnd = positions[id] + 1;
    segment.publishes = ordinals[id] != 0;
  }
  MGPU_ASSERT(nextWait == waits.end(), "waits are in the nodes' order");
  WorkerQueue &first = program.queues[0];
  for (uint32_t k = 1; k < numQueues; ++k)
    if (published[k])
      first.waits.push_back({k, published[k]});
  first.segments.push_back(
      {uint32_t(first.waits.size()), uint32_t(first.ops.size()), false});
  return program;
}

namespace {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) &&
                  std::atomic<uint32_t>::is_always_lock_free,
              "a futex is a plain 32-bit word");

void futexWait(std::atomic<uint32_t> &word, uint32_t expected,
               const timespec *timeout) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAIT_PRIVATE,
          expected, timeout, nullptr, 0);
}

void futexWakeAll(std::atomic<uint32_t> &word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAKE_PRIVATE,
          INT_MAX, nullptr, nullptr, 0);
}

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

/// A bounded spin. The first polls are back to back because most waits end
/// within a cache miss or two; then a pause each, about 40 ns on current Intel.
class Spin {
public:
  explicit Spin(uint32_t pausedPolls) : most(eagerPolls + pausedPolls) {}
  bool again() {
    if (++count <= eagerPolls)
      return true;
    relax();
    return count <= most;
  }
  void reset() { count = 0; }
  /// Long enough that a worker that was awake would have come.
  bool overdue() const { return count > eagerPolls + overduePolls; }

private:
  static constexpr uint32_t eagerPolls = 64, overduePolls = 20;
  uint32_t count = 0, most;
};

/// How long to spin before parking, in pauses: 80 us, some twice of what
/// parking and being woken costs, so that a wait never costs much more than the
/// better of the two, and workers stay awake between replays in a row. With
/// more threads than cores a spin may hold up the one it waits for: 4 us.
uint32_t pausedPollsFor(uint32_t numThreads) {
  return usableCores() >= numThreads ? 2000 : 100;
}

/// The pool that began to replay last. Workers of others do not spin between
/// their replays: they would hold up its own.
std::atomic<const WorkerPool *> lastToRun{nullptr};

/// Counters wrap: compare distances, never values.
bool atLeast(uint32_t value, uint32_t target) {
  return int32_t(value - target) >= 0;
}

} // namespace

WorkerPool::WorkerPool(uint32_t numQueues, uint32_t progressSoFar,
                       std::span<const int> workerCpus)
    : pausedPolls(pausedPollsFor(numQueues)), progress(numQueues),
      claims(numQueues), base(numQueues, 0),
      seen(size_t(numQueues) * ((numQueues + 31) / 32)),
      callerQueues(numQueues, 0) {
  MGPU_CHECK(numQueues >= 1, "the caller has a queue of its own");
  for (Progress &queue : progress)
    queue.value.store(progressSoFar, std::memory_order_relaxed);
  workers.reserve(numQueues - 1);
  try {
    for (uint32_t queue = 1; queue < numQueues; ++queue) {
      const int cpu = queue <= workerCpus.size() ? workerCpus[queue - 1] : -1;
      workers.emplace_back([this, queue, cpu] {
        pinThread(cpu); // where it may not, the system decides
        workerMain(queue);
      });
    }
  } catch (...) {
    stopWorkers();
    throw;
  }
}

WorkerPool::~WorkerPool() { stopWorkers(); }

void WorkerPool::stopWorkers() {
  stopping.store(true);
  epoch.fetch_add(1, std::memory_order_seq_cst);
  wakeSleepers();
  for (std::thread &worker : workers)
    worker.join();
}

void WorkerPool::run(const ReplayJob &job) {
  const WorkerProgram &program = *job.program;
  MGPU_CHECK(job.queues.size() == numQueues() &&
                 program.queues.size() == numQueues(),
             "a program is for a pool of as many queues");
  if (program.numActive <= 1 ||
      busy.exchange(true, std::memory_order_acquire)) {
    const Op *end = job.serial + program.serial.size();
    for (const Op *op = job.serial; op != end; ++op)
      op->function(op->context);
    return;
  }
  if (lastToRun.load(std::memory_order_relaxed) != this)
    lastToRun.store(this, std::memory_order_relaxed);
  uint32_t current = epoch.load(std::memory_order_relaxed) + 1;
  for (uint32_t queue = 0; queue < numQueues(); ++queue) {
    base[queue] = progress[queue].value.load(std::memory_order_relaxed);
    bool taken = queue == 0 || program.queues[queue].ops.empty();
    claims[queue].cursor = start(job, queue);
    claims[queue].word.store(2 * current + taken, std::memory_order_relaxed);
  }
  forget(0);
  callerCore.store(sched_getcpu(), std::memory_order_relaxed);
  epoch.store(current, std::memory_order_seq_cst);
  wakeSleepers();
  runCaller(current);
  busy.store(false, std::memory_order_release);
}

WorkerPool::Cursor WorkerPool::start(const ReplayJob &job, uint32_t queue) {
  const WorkerQueue &program = job.program->queues[queue];
  Cursor cursor;
  cursor.queue = queue;
  cursor.segment = program.segments.data();
  cursor.segmentEnd = cursor.segment + program.segments.size();
  cursor.wait = cursor.waits = program.waits.data();
  cursor.op = cursor.ops = job.queues[queue];
  return cursor;
}

bool WorkerPool::reached(uint32_t queue, const QueueWait &wait) {
  uint32_t &last = seenBy(queue, wait.queue);
  if (last >= wait.ordinal)
    return true;
  uint32_t value = progress[wait.queue].value.load(std::memory_order_acquire) -
                   base[wait.queue];
  if (value < wait.ordinal)
    return false;
  last = value;
  return true;
}

void WorkerPool::forget(uint32_t queue) {
  for (uint32_t other = 0; other < numQueues(); ++other)
    seenBy(queue, other) = 0;
}

void WorkerPool::publish(uint32_t queue, uint32_t value) {
  Progress &mine = progress[queue];
  MGPU_ASSERT(value == mine.value.load(std::memory_order_relaxed) + 1,
              "a queue publishes one step after the other");
  // Sequentially consistent against park(): either the waiter sees the value
  // or we see the waiter.
  mine.value.store(value, std::memory_order_seq_cst);
  if (mine.waiters.load(std::memory_order_seq_cst) != 0)
    futexWakeAll(mine.value);
}

/// Runs as far as the waits allow, or while `lending` until a worker asks for
/// its queue. After its last publication a worker must not touch the program:
/// the caller may be gone.
WorkerPool::Stop WorkerPool::advance(Cursor &cursor, bool lending,
                                     uint32_t current) {
  while (cursor.segment != cursor.segmentEnd) {
    const Segment segment = *cursor.segment;
    for (const QueueWait *end = cursor.waits + segment.waitEnd;
         cursor.wait != end; ++cursor.wait)
      if (!reached(cursor.queue, *cursor.wait))
        return Stop::Blocked;
    const Op *op = cursor.op, *end = cursor.ops + segment.opEnd;
    if (lending) {
      for (; op != end; ++op) {
        if (wanted.load(std::memory_order_relaxed) == current) {
          cursor.op = op;
          return Stop::Asked;
        }
        op->function(op->context);
      }
    }
    cursor.op = end;
    for (; op != end; ++op)
      op->function(op->context);
    ++cursor.segment;
    if (segment.publishes) {
      uint32_t value = base[cursor.queue] + ++cursor.published;
      publish(cursor.queue, value);
    }
  }
  return Stop::Finished;
}

void WorkerPool::park(uint32_t queue, uint32_t target, bool briefly) {
  static constexpr timespec shortTime{0, 20'000};
  Progress &theirs = progress[queue];
  theirs.waiters.fetch_add(1, std::memory_order_seq_cst);
  uint32_t value = theirs.value.load(std::memory_order_seq_cst);
  while (!atLeast(value, target)) {
    futexWait(theirs.value, value, briefly ? &shortTime : nullptr);
    if (briefly)
      break;
    value = theirs.value.load(std::memory_order_seq_cst);
  }
  theirs.waiters.fetch_sub(1, std::memory_order_seq_cst);
}

bool WorkerPool::onOffer(uint32_t queue, uint32_t current) const {
  return claims[queue].word.load(std::memory_order_seq_cst) == 2 * current;
}

bool WorkerPool::claim(uint32_t queue, uint32_t current) {
  std::atomic<uint32_t> &word = claims[queue].word;
  uint32_t expected = 2 * current;
  if (word.load(std::memory_order_relaxed) != expected ||
      !word.compare_exchange_strong(expected, 2 * current + 1,
                                    std::memory_order_acquire,
                                    std::memory_order_relaxed))
    return false;
  forget(queue);
  return true;
}

/// Bounds how often two threads on one core can hand a queue to and fro, and
/// spares short replays the system call that would wake us. Nobody does.
void WorkerPool::nap(uint32_t queue, uint32_t doublings) {
  timespec pause{0, 100'000L << doublings};
  std::atomic<uint32_t> &word = claims[queue].wanted;
  futexWait(word, word.load(std::memory_order_relaxed), &pause);
}

/// For a worker that found its queue taken. On the caller's core it could only
/// take turns with it, so it gives the system up to 1.5 ms to move it.
void WorkerPool::askFor(uint32_t queue, uint32_t current) {
  for (uint32_t k = 0; k < 4; ++k) {
    nap(queue, k);
    if (epoch.load(std::memory_order_relaxed) != current)
      return;
    if (!busy.load(std::memory_order_relaxed) ||
        sched_getcpu() != callerCore.load(std::memory_order_relaxed))
      break;
  }
  claims[queue].wanted.store(current, std::memory_order_relaxed);
  // An exchange, so that the caller's acquires what every worker wrote before.
  wanted.exchange(current, std::memory_order_acq_rel);
}

/// The caller offers the queues that workers ask for. Returns how many of
/// callerQueues it still owns.
uint32_t WorkerPool::handBack(uint32_t owned, uint32_t current) {
  wanted.exchange(0, std::memory_order_acq_rel);
  uint32_t kept = 1;
  for (uint32_t k = 1; k < owned; ++k) {
    uint32_t queue = callerQueues[k];
    Claim &taken = claims[queue];
    if (!taken.cursor.finished &&
        taken.wanted.exchange(0, std::memory_order_relaxed) == current) {
      taken.handedBack.store(true, std::memory_order_relaxed);
      taken.word.store(2 * current, std::memory_order_seq_cst);
    } else {
      callerQueues[kept++] = queue;
    }
  }
  if (kept != owned)
    wakeSleepers();
  return kept;
}

void WorkerPool::runCaller(uint32_t current) {
  // Short naps that leave a worker the time to wake up for the queue it asked
  // for.
  static constexpr uint32_t courtesyNaps = 3;
  uint32_t naps = 0;
  auto takeable = [&](uint32_t queue) {
    return onOffer(queue, current) &&
           (naps == 0 ||
            !claims[queue].handedBack.load(std::memory_order_relaxed));
  };
  uint32_t owned = 1; // callerQueues owned, whose first is queue 0
  Spin spin(pausedPolls);
  while (true) {
    bool moved = false;
    uint32_t unfinished = 0;
    const Cursor *blocked = nullptr;
    for (uint32_t k = 0; k < owned; ++k) {
      Cursor &cursor = claims[callerQueues[k]].cursor;
      if (cursor.finished)
        continue;
      const QueueWait *before = cursor.wait;
      Stop stop = advance(cursor, owned > 1, current);
      cursor.finished = stop == Stop::Finished;
      unfinished += !cursor.finished;
      moved |= stop != Stop::Blocked || cursor.wait != before;
      if (stop == Stop::Blocked)
        blocked = &cursor;
    }
    if (claims[0].cursor.finished)
      return;
    if (owned > 1 && wanted.load(std::memory_order_relaxed) == current) {
      uint32_t before = owned;
      owned = handBack(owned, current);
      naps = owned != before ? courtesyNaps : naps;
      moved = true;
    }
    if (moved)
      spin.reset();
    bool patient = spin.again();
    // A queue that stays on offer has no worker awake.
    bool forsaken = spin.overdue() && blocked && takeable(blocked->wait->queue);
    if (moved || (patient && !forsaken))
      continue;
    spin.reset();
    callerCore.store(sched_getcpu(), std::memory_order_relaxed);
    uint32_t queue = 1;
    while (queue < numQueues() && !(takeable(queue) && claim(queue, current)))
      ++queue;
    if (queue < numQueues()) {
      callerQueues[owned++] = queue;
      continue;
    }
    // With several queues in hand any of them may become ready, and only one
    // can be parked on: look again soon.
    park(blocked->wait->queue,
         base[blocked->wait->queue] + blocked->wait->ordinal,
         unfinished > 1 || naps > 0);
    naps -= naps > 0;
  }
}

/// True if this worker ran its queue to the end, false if another has it.
/// `parked`: when it last had to park.
bool WorkerPool::runWorker(uint32_t queue, uint32_t current,
                           Clock::time_point &parked) {
  // A copy: from our last publication on, the shared one belongs to the next
  // replay.
  Cursor cursor = claims[queue].cursor;
  claims[queue].handedBack.store(false, std::memory_order_relaxed);
  Spin spin(pausedPolls);
  while (true) {
    const QueueWait *before = cursor.wait;
    if (advance(cursor, false, current) == Stop::Finished)
      return true;
    if (cursor.wait != before)
      spin.reset();
    if (spin.again())
      continue;
    spin.reset();
    // Once the queue is on offer, the caller may run it to its end and return:
    // copy what parking needs first.
    uint32_t awaited = cursor.wait->queue;
    uint32_t target = base[awaited] + cursor.wait->ordinal;
    claims[queue].cursor = cursor;
    claims[queue].word.store(2 * current, std::memory_order_release);
    Clock::time_point now = Clock::now();
    // Some ten times what parking and waking cost.
    bool often =
        now - std::exchange(parked, now) < std::chrono::microseconds(50);
    if (often && sched_getcpu() == callerCore.load(std::memory_order_relaxed))
      nap(queue, 0);
    else
      park(awaited, target, false);
    if (!claim(queue, current))
      return false;
    cursor = claims[queue].cursor; // the caller may have moved it
    claims[queue].handedBack.store(false, std::memory_order_relaxed);
  }
}

/// Until the next epoch, or until the worker's queue is on offer in this one.
void WorkerPool::sleepInEpoch(uint32_t queue, uint32_t current) {
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  // Read before what it announces: a bell rung after this ends the wait.
  uint32_t rung = bell.load(std::memory_order_seq_cst);
  if (epoch.load(std::memory_order_seq_cst) == current &&
      !onOffer(queue, current))
    futexWait(bell, rung, nullptr);
  sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

/// After an epoch or an offer was stored, sequentially consistent.
void WorkerPool::wakeSleepers() {
  if (sleepers.load(std::memory_order_seq_cst) == 0)
    return;
  bell.fetch_add(1, std::memory_order_seq_cst);
  futexWakeAll(bell);
}

void WorkerPool::workerMain(uint32_t queue) {
  uint32_t last = 0;
  Clock::time_point parked{};
  bool left = false; // to the caller, in epoch `last`
  Spin spin(pausedPolls);
  while (true) {
    uint32_t current = epoch.load(std::memory_order_acquire);
    if (current == last) {
      if (lastToRun.load(std::memory_order_relaxed) == this && spin.again())
        continue;
      spin.reset();
      if (left && claims[queue].wanted.load(std::memory_order_relaxed) != last)
        askFor(queue, last); // for the first time, or handed back and retaken
      else
        sleepInEpoch(queue, last);
      if (!onOffer(queue, last))
        continue;
    }
    if (stopping.load(std::memory_order_relaxed))
      return;
    last = current;
    spin.reset();
    left = !claim(queue, current) || !runWorker(queue, current, parked);
  }
}

} // namespace mgpu::device

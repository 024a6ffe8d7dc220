// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_WORKERPOOL_H
#define MGPU_DEVICE_HOST_WORKERPOOL_H

// The threads that replay queue programs. Queue 0 is the calling thread; each
// other queue has a worker, parked between replays. A queue waits for another
// by that queue's progress counter, which only ever grows: nothing is reset
// between replays. All waiting is a bounded spin, then a futex; publishing
// makes a system call only when somebody is parked.
//
// A worker must claim its queue before it runs it, and offers it again before
// it parks. A caller that is stuck takes every queue on offer and runs it
// beside its own. So a worker the system does not schedule delays nobody, and
// two threads forced onto one core hand over once, not at every edge. A worker
// that comes late naps a while, then asks for its queue, and the caller hands
// it back after the op at hand: a long replay is not left to one thread because
// the others woke microseconds too late. A worker that has to park again and
// again on the caller's own core naps too, or every edge would be a context
// switch. Counters and claims belong to the pool, not to the program: a late
// worker never looks at a program that may be gone.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

namespace mgpu::device {

// A graph flattened for replay: per queue one array of calls, cut into segments
// by the few waits that queue order and earlier waits do not already imply.

/// One node: what to call.
struct Op {
  void (*function)(void *) = nullptr;
  void *context = nullptr;
};

/// Wait until `queue` has published `ordinal` times in this replay.
struct QueueWait {
  uint32_t queue = 0, ordinal = 0;
};

/// The waits up to waitEnd, then the calls up to opEnd, then, if set, one
/// publication. Each begins where the previous segment ended.
struct Segment {
  uint32_t waitEnd = 0, opEnd = 0;
  bool publishes = false;
};

struct WorkerQueue {
  std::vector<Op> ops;
  std::vector<uint32_t> nodes; ///< the graph node of each op
  std::vector<Segment> segments;
  std::vector<QueueWait> waits;
};

/// Queue 0 ends with a wait for the end of every other queue, so queue 0 done
/// means replay done.
struct WorkerProgram {
  std::vector<WorkerQueue> queues;
  std::vector<Op> serial; ///< every op in creation order
  uint32_t numActive = 0; ///< queues with at least one op
};

struct ProgramNode {
  uint32_t queue = 0;
  Op op;
  std::vector<uint32_t> dependencies; ///< earlier nodes
};

/// Nodes are in a topological order. Costs O(edges x queues).
WorkerProgram buildProgram(std::span<const ProgramNode> nodes,
                           uint32_t numQueues);

/// A replay: a program's shape, and the ops to call at its nodes (the program's
/// own, or instrumented ones of the same layout).
struct ReplayJob {
  const WorkerProgram *program = nullptr;
  const Op *serial = nullptr;
  std::vector<const Op *> queues;
};

class WorkerPool {
public:
  /// Throws std::system_error when the system refuses a thread. Progress counts
  /// on from `progressSoFar`: counters wrap after hours or, with trivial nodes,
  /// seconds, and a test must not wait for that. The worker of queue k stays on
  /// CPU `workerCpus[k - 1]`, if there is one and the calling thread may use
  /// it; queues move from thread to thread as without.
  explicit WorkerPool(uint32_t numQueues, uint32_t progressSoFar = 0,
                      std::span<const int> workerCpus = {});
  ~WorkerPool();
  WorkerPool(const WorkerPool &) = delete;
  WorkerPool &operator=(const WorkerPool &) = delete;

  uint32_t numQueues() const { return uint32_t(claims.size()); }

  /// Replays `job` and returns when it is done. Safe to call from several
  /// threads: while the workers are taken, a caller runs its job alone.
  void run(const ReplayJob &job);

private:
  using Clock = std::chrono::steady_clock;
  struct alignas(128) Progress {
    std::atomic<uint32_t> value{0};
    std::atomic<uint32_t> waiters{0};
  };
  /// Where a queue stands in a replay; only the owner of its claim looks.
  struct Cursor {
    uint32_t queue = 0;
    const Segment *segment = nullptr, *segmentEnd = nullptr;
    const QueueWait *wait = nullptr, *waits = nullptr;
    const Op *op = nullptr, *ops = nullptr;
    uint32_t published = 0;
    bool finished = false;
  };
  /// `word` is 2 x epoch while on offer in that epoch, one more once claimed;
  /// `wanted` the last epoch in which the worker asked for its queue.
  struct alignas(128) Claim {
    std::atomic<uint32_t> word{1};
    std::atomic<uint32_t> wanted{0};
    std::atomic<bool> handedBack{false}; ///< and its worker has not come yet
    Cursor cursor;
  };

  /// How often a queue saw each queue publish in this replay: a wait that an
  /// earlier look answers touches no line of another core. Lines of its own for
  /// each reader, because it writes there at every step forward.
  struct alignas(128) Seen {
    uint32_t of[32] = {};
  };

  static Cursor start(const ReplayJob &job, uint32_t queue);
  enum class Stop { Finished, Blocked, Asked };
  Stop advance(Cursor &cursor, bool lending, uint32_t current);
  bool reached(uint32_t queue, const QueueWait &wait);
  uint32_t &seenBy(uint32_t queue, uint32_t other) {
    return seen[queue * ((numQueues() + 31) / 32) + other / 32].of[other % 32];
  }
  void publish(uint32_t queue, uint32_t value);
  void park(uint32_t queue, uint32_t target, bool briefly);
  void forget(uint32_t queue);
  bool onOffer(uint32_t queue, uint32_t current) const;
  bool claim(uint32_t queue, uint32_t current);
  void nap(uint32_t queue, uint32_t doublings);
  void askFor(uint32_t queue, uint32_t current);
  uint32_t handBack(uint32_t owned, uint32_t current);
  void runCaller(uint32_t current);
  bool runWorker(uint32_t queue, uint32_t current, Clock::time_point &parked);
  void sleepInEpoch(uint32_t queue, uint32_t current);
  void workerMain(uint32_t queue);
  void wakeSleepers();
  void stopWorkers();

  const uint32_t pausedPolls; ///< before parking
  std::vector<Progress> progress;
  std::vector<Claim> claims;
  std::vector<uint32_t> base; ///< progress of each queue at the replay's start
  std::vector<Seen> seen;
  std::vector<uint32_t> callerQueues; ///< what the caller runs, its own first
  std::atomic<bool> busy{false};
  std::atomic<bool> stopping{false};
  alignas(128) std::atomic<uint32_t> epoch{0};
  std::atomic<int> callerCore{-1};   ///< where the caller ran last
  std::atomic<uint32_t> sleepers{0}; ///< workers parked on `bell`
  std::atomic<uint32_t> bell{0};     ///< counts the calls that wake them
  /// The epoch in which some worker asks for its queue.
  alignas(128) std::atomic<uint32_t> wanted{0};
  std::vector<std::thread> workers;
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_HOST_WORKERPOOL_H

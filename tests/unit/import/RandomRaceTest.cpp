// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random programs of launches, copies, waits, syncs and collectives, judged by
// the importer and by a graph of everything that happens before everything
// else: a race is found by both or by neither.
#include "ImportText.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

namespace mgpu::planner {
namespace {

// Buffers 0..2 are %a, %a2, %a3 of device 0, 3..5 %b, %b2, %b3 of device 1.
constexpr const char *buffers[] = {"%a", "%a2", "%a3", "%b", "%b2", "%b3"};
constexpr const char *streams[] = {"%s0", "%t0", "%s1"};
constexpr int numBuffers = 6, numStreams = 3;
int deviceOfStream(int stream) { return stream == 2; }

/// Generates a program and keeps its happens-before graph.
class RandomProgram {
public:
  explicit RandomProgram(uint32_t seed) : random(seed) {
    for (int k = 0; k < 14; ++k)
      step();
    while (!open.empty()) // every member calls in the end
      answer(pick(2));
  }
  const std::string &body() const { return text; }

  /// Whether a call waits for one that waits for it: both ends of a collective
  /// come after both of its starts.
  bool hasDeadlock() {
    std::vector<std::vector<int>> graph = after;
    for (auto [start, end] : matched)
      graph[start].push_back(end);
    std::vector<std::vector<bool>> reached = closure(graph);
    for (size_t k = 0; k < reached.size(); ++k)
      if (reached[k][k])
        return true;
    return false;
  }

  /// Whether two sure uses of one buffer, one a write, are unordered.
  bool hasRace() {
    std::vector<std::vector<bool>> before = closure(after);
    for (size_t b = 0; b < uses.size(); ++b)
      for (size_t a = 0; a < uses.size(); ++a)
        if (uses[a].node < uses[b].node && uses[a].buffer == uses[b].buffer &&
            (uses[a].writes || uses[b].writes) && uses[a].sure &&
            uses[b].sure && !before[uses[a].end][uses[b].start])
          return true;
    return false;
  }

private:
  struct Use {
    int node, buffer;
    bool writes, sure;
    int start, end; ///< events
  };
  enum class Kind { AllReduce, Broadcast, Permute };
  /// A collective that one device has called.
  struct Open {
    int caller, buffer, start, end;
    Kind kind;
    int root;
    bool sends[2]; ///< a permute: to the other device
    /// Whether the other device's bytes come to `device`.
    bool isTarget(int device) const {
      return kind == Kind::AllReduce   ? true
             : kind == Kind::Broadcast ? root != device
                                       : sends[1 - device];
    }
    bool reads(int device) const { return isTarget(1 - device); }
    /// A permute leaves zeros where nobody sends to.
    bool writes(int device) const {
      return kind == Kind::Permute || isTarget(device);
    }
  };

  int pick(int count) { return int(random() % uint32_t(count)); }
  int event() {
    after.emplace_back();
    return int(after.size()) - 1;
  }
  void order(int from, int to) { after[from].push_back(to); }

  /// Puts an item of two events on a stream.
  std::pair<int, int> queue(int stream) {
    int start = event(), end = event();
    order(start, end);
    for (int known : {lastOf[stream], int(hostEvent)})
      if (known >= 0)
        order(known, start);
    lastOf[stream] = end;
    return {start, end};
  }
  bool isFree(int buffer) const {
    for (const Open &call : open)
      if (call.buffer == buffer)
        return false;
    return true;
  }
  int freeBuffer(int device) {
    std::vector<int> free;
    for (int k = 0; k < numBuffers; ++k)
      if (k / 3 == device && isFree(k))
        free.push_back(k);
    return free.empty() ? -1 : free[pick(int(free.size()))];
  }

  void step() {
    switch (pick(8)) {
    case 0:
    case 1:
    case 2:
      return launchSomething();
    case 3:
      return copySomething();
    case 4:
      return waitSomewhere();
    case 5:
      return syncSomewhere();
    default:
      return pick(2) || open.empty() ? call(pick(2)) : answer(pick(2));
    }
  }

  void launchSomething() {
    int stream = pick(numStreams), device = deviceOfStream(stream);
    int buffer = freeBuffer(device);
    if (buffer < 0)
      return;
    bool writes = pick(2), sure = pick(3) > 0;
    std::string access =
        writes ? fmt::format("    memref.store %one, {}[%i] : memref<64xf32>\n",
                             buffers[buffer])
               : fmt::format("    %v = memref.load {}[%i] : memref<64xf32>\n",
                             buffers[buffer]);
    if (!sure)
      access = "    %in = arith.cmpi ne, %i, %c32 : index\n    scf.if %in {\n" +
               access + "    }\n";
    text += launch(device ? "%d1" : "%d0", streams[stream], access);
    auto [start, end] = queue(stream);
    uses.push_back({numNodes++, buffer, writes, sure, start, end});
  }

  void copySomething() {
    int from = freeBuffer(pick(2)), to = freeBuffer(pick(2));
    int stream = pick(numStreams);
    if (from < 0 || to < 0 || from == to)
      return;
    text += fmt::format(
        "  mgpu.memcpy {}, {}, %d{}, %d{} stream {} : !mgpu.stream : "
        "memref<64xf32>, memref<64xf32>, !mgpu.device, !mgpu.device\n",
        buffers[to], buffers[from], to / 3, from / 3, streams[stream]);
    auto [start, end] = queue(stream);
    uses.push_back({numNodes, from, false, true, start, end});
    uses.push_back({numNodes++, to, true, true, start, end});
  }

  void waitSomewhere() {
    int waiting = pick(numStreams), other = pick(numStreams);
    if (waiting == other || lastOf[other] < 0)
      return;
    text += fmt::format("  mgpu.stream_wait {}, {} : !mgpu.stream, "
                        "!mgpu.stream\n",
                        streams[waiting], streams[other]);
    // Waits add up; a wait is itself passed on to who waits for this stream.
    auto [start, end] = queue(waiting);
    order(lastOf[other], start);
  }

  void syncSomewhere() {
    int stream = pick(numStreams);
    // With a call open the host might wait for it for ever.
    if (!open.empty() || lastOf[stream] < 0)
      return;
    text +=
        fmt::format("  mgpu.sync_stream {} : !mgpu.stream\n", streams[stream]);
    int synced = event();
    if (hostEvent >= 0)
      order(hostEvent, synced);
    order(lastOf[stream], synced);
    hostEvent = synced;
  }

  std::string callText(const Open &call, int stream) {
    if (call.kind == Kind::Permute)
      return fmt::format("  mgpu.permute {0}, {0}, %comm stream {1} : "
                         "!mgpu.stream pairs = [{2}{3}{4}] : memref<64xf32>, "
                         "memref<64xf32>, !mgpu.communicator\n",
                         buffers[call.buffer], streams[stream],
                         call.sends[0] ? "[0, 1]" : "",
                         call.sends[0] && call.sends[1] ? ", " : "",
                         call.sends[1] ? "[1, 0]" : "");
    if (call.kind == Kind::Broadcast)
      return fmt::format("  mgpu.broadcast {}, %comm, %c{} stream {} : "
                         "!mgpu.stream : memref<64xf32>, "
                         "!mgpu.communicator\n",
                         buffers[call.buffer], call.root, streams[stream]);
    return fmt::format("  mgpu.all_reduce {0}, {0}, %comm, sum stream {1} : "
                       "!mgpu.stream : memref<64xf32>, memref<64xf32>, "
                       "!mgpu.communicator\n",
                       buffers[call.buffer], streams[stream]);
  }
  int streamOf(int device) { return device ? 2 : deviceZeroStream; }

  // A device's calls all go to one stream, so that they cannot block each
  // other in a cycle.
  void call(int device) {
    if (!open.empty() && open.front().caller != device)
      return answer(device);
    int buffer = freeBuffer(device);
    if (buffer < 0)
      return;
    Open made{device,
              buffer,
              0,
              0,
              Kind(pick(3)),
              pick(2),
              {pick(2) == 0, pick(2) == 0}};
    text += callText(made, streamOf(device));
    std::tie(made.start, made.end) = queue(streamOf(device));
    open.push_back(made);
  }

  /// The other device's call of the oldest open collective.
  void answer(int) {
    Open first = open.front(), second = first;
    second.caller = 1 - first.caller;
    second.buffer = freeBuffer(second.caller);
    text += callText(second, streamOf(second.caller));
    std::tie(second.start, second.end) = queue(streamOf(second.caller));
    open.erase(open.begin());
    for (const Open &call : {first, second}) {
      const Open &other = call.caller == first.caller ? second : first;
      matched.emplace_back(other.start, call.end);
      if (call.reads(call.caller))
        uses.push_back(
            {numNodes, call.buffer, false, true, call.start, call.end});
      if (call.writes(call.caller))
        uses.push_back(
            {numNodes, call.buffer, true, true, call.start, call.end});
      // It has waited for what the sender's queue had waited for.
      if (call.isTarget(call.caller))
        order(other.start, call.end);
    }
    ++numNodes;
  }

  static std::vector<std::vector<bool>>
  closure(const std::vector<std::vector<int>> &graph) {
    std::vector<std::vector<bool>> before(graph.size(),
                                          std::vector<bool>(graph.size()));
    for (size_t from = 0; from < graph.size(); ++from) {
      std::vector<int> todo{int(from)};
      while (!todo.empty()) {
        int at = todo.back();
        todo.pop_back();
        for (int next : graph[at])
          if (!before[from][next]) {
            before[from][next] = true;
            todo.push_back(next);
          }
      }
    }
    return before;
  }

  std::mt19937 random;
  std::string text;
  std::vector<std::vector<int>> after; ///< graph: the events right after each
  std::vector<std::pair<int, int>> matched; ///< start of one call, end of other
  std::vector<Use> uses;
  std::vector<Open> open;
  std::vector<int> lastOf = std::vector<int>(numStreams, -1);
  int hostEvent = -1, numNodes = 0;
  int deviceZeroStream = pick(2);
};

TEST(RandomRace, ImporterAgreesWithHappensBefore) {
  int numRacy = 0, numClean = 0, numStuck = 0;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    RandomProgram made(seed);
    Imported imported = importText(program(made.body()));
    if (made.hasDeadlock()) {
      // A race before it ends the check.
      ASSERT_GT(imported.errors.size(), 0u) << "seed " << seed << '\n'
                                            << made.body();
      numStuck += imported.countErrors("deadlock") > 0;
      continue;
    }
    size_t races = imported.countErrors("race on buffer");
    ASSERT_EQ(races, imported.errors.size()) << "seed " << seed << '\n'
                                             << imported.text() << made.body();
    ASSERT_EQ(races > 0, made.hasRace()) << "seed " << seed << '\n'
                                         << imported.text() << made.body();
    ++(races > 0 ? numRacy : numClean);
  }
  // The generator makes all kinds.
  EXPECT_GT(numStuck, 5);
  EXPECT_GT(numRacy, 200);
  EXPECT_GT(numClean, 200);
}

} // namespace
} // namespace mgpu::planner

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the program's streams order, judged against what its nodes touch.
#include "ImportText.h"

#include <gtest/gtest.h>

namespace mgpu::planner {
namespace {

std::string store(const std::string &buffer) {
  return "    memref.store %one, " + buffer + "[%i] : memref<64xf32>\n";
}
std::string load(const std::string &buffer) {
  return "    %v" + buffer.substr(1) + " = memref.load " + buffer +
         "[%i] : memref<64xf32>\n";
}
std::string guarded(const std::string &body) {
  // What "is not equal" lets through is not a range of ids.
  return "    %in = arith.cmpi ne, %i, %c32 : index\n    scf.if %in {\n" +
         body + "    }\n";
}
/// As nearly every kernel is written.
std::string inRange(const std::string &predicate, const std::string &body) {
  return "    %in = arith.cmpi " + predicate +
         ", %i, %c32 : index\n    scf.if %in {\n" + body + "    }\n";
}
std::string memcpyTo(const std::string &target, const std::string &source,
                     const std::string &stream) {
  return "  mgpu.memcpy " + target + ", " + source + ", %d" +
         (target[1] == 'a' ? "0" : "1") + ", %d" +
         (source[1] == 'a' ? "0" : "1") + " stream " + stream +
         " : !mgpu.stream : memref<64xf32>, memref<64xf32>, !mgpu.device, "
         "!mgpu.device\n";
}
std::string allReduce(const std::string &buffer, const std::string &stream) {
  return "  mgpu.all_reduce " + buffer + ", " + buffer +
         ", %comm, sum stream " + stream +
         " : !mgpu.stream : memref<64xf32>, memref<64xf32>, "
         "!mgpu.communicator\n";
}

struct Verdict {
  size_t proven, possible;
  bool operator==(const Verdict &) const = default;
};
std::ostream &operator<<(std::ostream &out, const Verdict &verdict) {
  return out << verdict.proven << " proven, " << verdict.possible
             << " possible";
}

Verdict judge(const std::string &body) {
  Imported checked = importText(program(body));
  EXPECT_EQ(checked.program.has_value(), checked.errors.empty())
      << checked.text();
  Verdict verdict{checked.countErrors("race on buffer"),
                  checked.countWarnings("possible race")};
  EXPECT_EQ(verdict.proven, checked.errors.size()) << checked.text();
  ImportOptions lenient;
  lenient.racesAreErrors = false;
  Imported run = importText(program(body), lenient);
  EXPECT_TRUE(run.program.has_value()) << run.text();
  if (run.program) {
    EXPECT_EQ(run.program->numRaces, verdict.proven) << run.text();
  }
  return verdict;
}

TEST(Race, SureStoresOfTwoStreamsAreProven) {
  EXPECT_EQ(judge(launch("%d0", "%s0", store("%a")) +
                  launch("%d0", "%t0", store("%a"))),
            (Verdict{1, 0}));
}

TEST(Race, AnAffineGuardLeavesAStoreSure) {
  const std::string low = inRange("ult", store("%a")),
                    high = inRange("uge", store("%a")),
                    last = inRange("sgt", store("%a"));
  auto both = [](const std::string &first, const std::string &second) {
    return judge(launch("%d0", "%s0", first) + launch("%d0", "%t0", second));
  };
  EXPECT_EQ(both(low, low), (Verdict{1, 0}));
  EXPECT_EQ(both(low, store("%a")), (Verdict{1, 0}));
  EXPECT_EQ(both(high, last), (Verdict{1, 0}));
  // What the guards let through is known, so these are apart.
  EXPECT_EQ(both(low, high), (Verdict{0, 0}));
  // The other half of a condition.
  const std::string halves =
      "    %in = arith.cmpi slt, %i, %c32 : index\n    scf.if %in {\n" +
      load("%a") + "    } else {\n" + store("%a2") + "    }\n";
  EXPECT_EQ(both(halves, low), (Verdict{1, 0}));
  EXPECT_EQ(both(halves, high), (Verdict{0, 0}));
}

/// A launch of 8 x 8 threads, %i and %j, on a memref<8x8xf32>.
std::string square(const std::string &stream, const std::string &body) {
  return "  mgpu.launch %d0 grid(%c1) block(%c8, %c8) stream " + stream +
         " {\n    %j = gpu.thread_id x\n    %i = gpu.thread_id y\n" + body +
         "  }\n";
}

TEST(Race, TrianglesAreApart) {
  auto triangle = [](const std::string &stream, const std::string &predicate) {
    return square(stream, "    %in = arith.cmpi " + predicate +
                              ", %j, %i : index\n    scf.if %in {\n"
                              "      memref.store %one, %m[%i, %j] : "
                              "memref<8x8xf32>\n    }\n");
  };
  auto both = [&](const std::string &first, const std::string &second) {
    return judge("  %m = mgpu.alloc %d0 : !mgpu.device -> memref<8x8xf32>\n" +
                 triangle("%s0", first) + triangle("%t0", second));
  };
  EXPECT_EQ(both("ult", "uge"), (Verdict{0, 0}));
  EXPECT_EQ(both("ult", "ugt"), (Verdict{0, 0}));
  EXPECT_EQ(both("ule", "uge"), (Verdict{1, 0})) << "the diagonal";
  // One behind the other hides nothing of it.
  EXPECT_EQ(judge("  %m = mgpu.alloc %d0 : !mgpu.device -> memref<8x8xf32>\n" +
                  triangle("%s0", "ult") + triangle("%s0", "uge") +
                  triangle("%t0", "ult")),
            (Verdict{1, 0}));
}

TEST(Race, RowsByQuotientsAreApart) {
  auto rows = [](const std::string &stream, int first) {
    return launch("%d0", stream,
                  "    %in = arith.cmpi ult, %i, %c32 : index\n"
                  "    scf.if %in {\n      %first = arith.constant " +
                      std::to_string(first) +
                      " : index\n      %q = arith.divui %i, %c8 : index\n"
                      "      %col = arith.remui %i, %c8 : index\n"
                      "      %row = arith.addi %q, %first : index\n"
                      "      memref.store %one, %m[%row, %col] : "
                      "memref<8x8xf32>\n    }\n");
  };
  auto both = [&](int first, int second) {
    return judge("  %m = mgpu.alloc %d0 : !mgpu.device -> memref<8x8xf32>\n" +
                 rows("%s0", first) + rows("%t0", second));
  };
  EXPECT_EQ(both(0, 4), (Verdict{0, 0}));
  EXPECT_EQ(both(0, 3), (Verdict{1, 0}));
}

TEST(Race, LanesAndVectorsAreSeen) {
  auto stored = [](const std::string &stream, const std::string &at) {
    return launch("%d0", stream,
                  "    %lane = gpu.lane_id\n    %c4 = arith.constant 4 : "
                  "index\n    %v = arith.constant dense<1.0> : vector<4xf32>\n"
                  "    %in = arith.cmpi ult, %i, %c8 : index\n"
                  "    scf.if %in {\n"
                  "      %low = arith.muli %lane, %c4 : index\n"
                  "      %high = arith.addi %low, %c32 : index\n"
                  "      vector.store %v, %a[%" +
                      at + "] : memref<64xf32>, vector<4xf32>\n    }\n");
  };
  EXPECT_EQ(judge(stored("%s0", "low") + stored("%t0", "high")),
            (Verdict{0, 0}));
  EXPECT_EQ(judge(stored("%s0", "low") + stored("%t0", "low")),
            (Verdict{1, 0}));
}

TEST(Race, APairOfLinesIsReportedOnceAndWarningsHideNoError) {
  const std::string loop = "  scf.for %it = %c0 to %c64 step %c1 {\n" +
                           launch("%d0", "%s0", store("%a2")) +
                           launch("%d0", "%t0", guarded(store("%a2"))) +
                           "  }\n";
  ImportOptions unrolled;
  unrolled.rollFrom = 0;
  Imported checked =
      importText(program(loop + launch("%d0", "%s0", store("%a")) +
                         launch("%d0", "%t0", store("%a"))),
                 unrolled);
  EXPECT_FALSE(checked.program);
  EXPECT_EQ(checked.countErrors("race on buffer 'a'"), 1u) << checked.text();
  EXPECT_LE(checked.countWarnings("possible race on buffer 'a2'"), 4u);
}

TEST(Race, AllOfThemAreReported) {
  EXPECT_EQ(judge(launch("%d0", "%s0", store("%a") + store("%a2")) +
                  launch("%d0", "%t0", store("%a")) +
                  launch("%d0", "%t0", store("%a2"))),
            (Verdict{2, 0}));
}

TEST(Race, GuardedStoreIsPossible) {
  EXPECT_EQ(judge(launch("%d0", "%s0", guarded(store("%a"))) +
                  launch("%d0", "%t0", store("%a"))),
            (Verdict{0, 1}));
}

// A sure load of the same bytes does not make the guarded store sure.
TEST(Race, SureLoadBesideGuardedStoreIsPossible) {
  EXPECT_EQ(judge(launch("%d0", "%s0", load("%a") + guarded(store("%a"))) +
                  launch("%d0", "%t0", load("%a"))),
            (Verdict{0, 1}));
}

TEST(Race, SureUseBehindGuardedStoreIsProven) {
  // The store of stream s0 stays in view behind the guarded one after it.
  EXPECT_EQ(judge(launch("%d0", "%s0", store("%a")) +
                  launch("%d0", "%s0", guarded(store("%a"))) +
                  launch("%d0", "%t0", load("%a"))),
            (Verdict{1, 1}));
  // So does a load that a store follows.
  EXPECT_EQ(judge(launch("%d0", "%s0", load("%a")) +
                  launch("%d0", "%s0", guarded(store("%a"))) +
                  launch("%d0", "%t0", store("%a"))),
            (Verdict{1, 1}));
  // Two loads do not race.
  EXPECT_EQ(judge(launch("%d0", "%s0", load("%a")) +
                  launch("%d0", "%s0", guarded(store("%a"))) +
                  launch("%d0", "%t0", load("%a"))),
            (Verdict{0, 1}));
}

TEST(Race, SureUseBehindManyGuardedStoresIsProven) {
  std::string guards;
  for (int k = 0; k < 5; ++k)
    guards += launch("%d0", "%s0", guarded(store("%a")));
  EXPECT_EQ(judge(launch("%d0", "%s0", store("%a")) + guards +
                  launch("%d0", "%t0", load("%a"))),
            (Verdict{1, 1}));
}

TEST(Race, WaitOrdersWhatIsBehindAGuardedStore) {
  EXPECT_EQ(judge(launch("%d0", "%s0", store("%a")) +
                  launch("%d0", "%s0", guarded(store("%a"))) +
                  "  mgpu.stream_wait %t0, %s0 : !mgpu.stream, !mgpu.stream\n" +
                  launch("%d0", "%t0", load("%a"))),
            (Verdict{0, 0}));
  // The wait is for the sure store alone.
  EXPECT_EQ(judge(launch("%d0", "%s0", store("%a")) +
                  "  mgpu.stream_wait %t0, %s0 : !mgpu.stream, !mgpu.stream\n" +
                  launch("%d0", "%s0", guarded(store("%a"))) +
                  launch("%d0", "%t0", load("%a"))),
            (Verdict{0, 1}));
  EXPECT_EQ(judge(launch("%d0", "%s0", store("%a")) +
                  launch("%d0", "%s0", guarded(store("%a"))) +
                  "  mgpu.sync_stream %s0 : !mgpu.stream\n" +
                  launch("%d0", "%t0", load("%a"))),
            (Verdict{0, 0}));
}

TEST(Race, SureStoreCoversWhatWasBehindAGuardedOne) {
  // The second sure store is the one to race with, and is named once.
  EXPECT_EQ(judge(launch("%d0", "%s0", store("%a")) +
                  launch("%d0", "%s0", guarded(store("%a"))) +
                  launch("%d0", "%s0", store("%a")) +
                  launch("%d0", "%t0", load("%a"))),
            (Verdict{1, 0}));
}

// Device 0's stream is blocked in the collective until device 1's call, which
// follows the copy: so does what device 0 queues meanwhile.
TEST(Race, QueuedBehindAnOpenCollectiveFollowsIt) {
  EXPECT_EQ(judge(memcpyTo("%a2", "%b2", "%s1") + allReduce("%a", "%s0") +
                  launch("%d0", "%s0", load("%a2")) + allReduce("%b", "%s1")),
            (Verdict{0, 0}));
  // The copy may as well be queued after device 0's call.
  EXPECT_EQ(judge(allReduce("%a", "%s0") + memcpyTo("%a2", "%b2", "%s1") +
                  launch("%d0", "%s0", load("%a2")) + allReduce("%b", "%s1")),
            (Verdict{0, 0}));
}

TEST(Race, QueuedBehindAnOpenCollectiveStillRaces) {
  // After the last member's call: nothing orders the copy.
  EXPECT_EQ(judge(allReduce("%a", "%s0") + launch("%d0", "%s0", load("%a2")) +
                  allReduce("%b", "%s1") + memcpyTo("%a2", "%b2", "%s1")),
            (Verdict{1, 0}));
  // Another stream of device 0 is not blocked.
  EXPECT_EQ(judge(memcpyTo("%a2", "%b2", "%s1") + allReduce("%a", "%s0") +
                  launch("%d0", "%t0", load("%a2")) + allReduce("%b", "%s1")),
            (Verdict{1, 0}));
}

TEST(Race, WaitForABlockedStreamCarriesTheCollective) {
  std::string wait =
      "  mgpu.stream_wait %t0, %s0 : !mgpu.stream, !mgpu.stream\n";
  // t0 waits for the blocked stream, before and after which its launch comes.
  EXPECT_EQ(judge(memcpyTo("%a2", "%b2", "%s1") + allReduce("%a", "%s0") +
                  wait + launch("%d0", "%t0", load("%a2")) +
                  allReduce("%b", "%s1")),
            (Verdict{0, 0}));
  EXPECT_EQ(judge(memcpyTo("%a2", "%b2", "%s1") + allReduce("%a", "%s0") +
                  wait + allReduce("%b", "%s1") +
                  launch("%d0", "%t0", load("%a2"))),
            (Verdict{0, 0}));
}

// The second collective's call is made while the first is open.
TEST(Race, OpenCollectiveBehindAnOpenCollective) {
  std::string copyBack = memcpyTo("%b2", "%a2", "%s1");
  EXPECT_EQ(judge(memcpyTo("%a2", "%b2", "%s1") + allReduce("%a", "%s0") +
                  allReduce("%a2", "%s0") + allReduce("%b", "%s1") +
                  allReduce("%b3", "%s1")),
            (Verdict{0, 0}));
}

// A send may end before its receiver starts, so what follows it does not
// follow what came before the receiver.
TEST(Race, QueuedBehindAnOpenSendIsNotOrdered) {
  EXPECT_EQ(judge(memcpyTo("%b", "%a2", "%s1") +
                  "  mgpu.send %a, %comm, %c1 stream %s0 : !mgpu.stream : "
                  "memref<64xf32>, !mgpu.communicator\n" +
                  launch("%d0", "%s0", store("%a2")) +
                  "  mgpu.recv %b2, %comm, %c0 stream %s1 : !mgpu.stream : "
                  "memref<64xf32>, !mgpu.communicator\n"),
            (Verdict{1, 0}));
  EXPECT_EQ(judge("  mgpu.recv %b2, %comm, %c0 stream %s1 : !mgpu.stream : "
                  "memref<64xf32>, !mgpu.communicator\n" +
                  launch("%d0", "%s0", store("%a2")) +
                  memcpyTo("%b", "%a2", "%s1") +
                  "  mgpu.send %a, %comm, %c1 stream %s0 : !mgpu.stream : "
                  "memref<64xf32>, !mgpu.communicator\n"),
            (Verdict{0, 0}));
}

std::string halfOf(const std::string &name, int offset) {
  return "  " + name + " = memref.subview %a[" + std::to_string(offset) +
         "] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1], offset: " +
         std::to_string(offset) + ">>\n";
}

// A kernel may reach past the view it is given by these.
TEST(Race, ReinterpretedViewReachesPastItsSource) {
  std::string views = halfOf("%lo", 32) + halfOf("%hi", 16);
  views = "  %lo = memref.subview %a[0] [8] [1] : memref<64xf32> to "
          "memref<8xf32, strided<[1]>>\n" +
          halfOf("%hi", 32);
  auto reader = [](const std::string &op) {
    return "  mgpu.launch %d0 grid(%c1) block(%c8) stream %s0 {\n"
           "    %i = gpu.thread_id x\n" +
           op + "  }\n";
  };
  std::string writeHigh = "  mgpu.launch %d0 grid(%c1) block(%c32) stream %t0 "
                          "{\n    %i = gpu.thread_id x\n"
                          "    memref.store %one, %hi[%i] : memref<32xf32, "
                          "strided<[1], offset: 32>>\n  }\n";
  EXPECT_EQ(
      judge(views +
            reader("    %r = memref.reinterpret_cast %lo to offset: [32], "
                   "sizes: [8], strides: [1] : memref<8xf32, strided<[1]>> to "
                   "memref<8xf32, strided<[1], offset: 32>>\n"
                   "    %v = memref.load %r[%i] : memref<8xf32, strided<[1], "
                   "offset: 32>>\n") +
            writeHigh),
      (Verdict{0, 1}));
  EXPECT_EQ(judge(views +
                  reader("    %v = memref.load %lo[%i] : memref<8xf32, "
                         "strided<[1]>>\n") +
                  writeHigh),
            (Verdict{0, 0}));
}

// A function called in a kernel that only accesses its view stays in it; one
// that makes another view of it may not.
TEST(Race, CalledFunctionsAreLookedInto) {
  std::string views = "  %lo = memref.subview %a[0] [8] [1] : memref<64xf32> "
                      "to memref<8xf32, strided<[1]>>\n" +
                      halfOf("%hi", 32);
  std::string body =
      views +
      "  mgpu.launch %d0 grid(%c1) block(%c8) stream %s0 {\n"
      "    %i = gpu.thread_id x\n"
      "    func.call @read(%lo, %i) : (memref<8xf32, strided<[1]>>, index) -> "
      "()\n  }\n"
      "  mgpu.launch %d0 grid(%c1) block(%c32) stream %t0 {\n"
      "    %i = gpu.thread_id x\n"
      "    memref.store %one, %hi[%i] : memref<32xf32, strided<[1], offset: "
      "32>>\n  }\n";
  std::string head = "func.func private @read(%m: memref<8xf32, "
                     "strided<[1]>>, %i: index) {\n";
  std::string inside = "  %v = memref.load %m[%i] : memref<8xf32, "
                       "strided<[1]>>\n  return\n}\n";
  std::string outside =
      "  %r = memref.reinterpret_cast %m to offset: [32], sizes: [8], strides: "
      "[1] : memref<8xf32, strided<[1]>> to memref<8xf32, strided<[1], "
      "offset: 32>>\n  %v = memref.load %r[%i] : memref<8xf32, strided<[1], "
      "offset: 32>>\n  return\n}\n";
  Imported stays = importText(program(body) + head + inside);
  ASSERT_TRUE(stays.program) << stays.text();
  EXPECT_EQ(stays.countWarnings("race"), 0u) << stays.text();
  Imported leaves = importText(program(body) + head + outside);
  ASSERT_TRUE(leaves.program) << leaves.text();
  EXPECT_EQ(leaves.countWarnings("possible race on buffer 'a'"), 1u)
      << leaves.text();
}

} // namespace
} // namespace mgpu::planner

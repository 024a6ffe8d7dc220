// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loop that stays rolled: which one, what its trips change, what is in
// which phase, and what keeps a loop from staying rolled.
#include "ImportText.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace mgpu::planner {
namespace {

std::string loop(const std::string &bounds, const std::string &body) {
  return "  scf.for %q = " + bounds + " {\n" + body + "  }\n";
}
const std::string eight = "%c0 to %c8 step %c1";

/// a[i] += 1.
std::string increment(const std::string &stream = "") {
  return launch("%d0", stream,
                "    %v = memref.load %a[%i] : memref<64xf32>\n"
                "    %w = arith.addf %v, %one : f32\n"
                "    memref.store %w, %a[%i] : memref<64xf32>\n");
}
/// a[i] = the i32 %n.
std::string storeN(const std::string &buffer = "%a") {
  return launch("%d0", "",
                "    %f = arith.sitofp %n : i32 to f32\n"
                "    memref.store %f, " +
                    buffer + "[%i] : memref<64xf32>\n");
}

/// Fails the test where the program is not imported.
Imported imported(const std::string &body, const std::string &arguments = "",
                  const ImportOptions &options = {}) {
  Imported result = importText(program(body, arguments), options);
  EXPECT_TRUE(result.program) << result.text();
  return result;
}

std::vector<Phase> phases(const Imported &of) {
  std::vector<Phase> found;
  for (const DagNode &node : of.dag().nodes)
    found.push_back(node.phase);
  return found;
}
using Phases = std::vector<Phase>;

/// The values the only induction takes, cut to 32 bits.
std::vector<int32_t> valuesOf(const std::string &bounds,
                              const std::string &computesN) {
  Imported of = imported(loop(bounds, computesN + storeN()));
  std::vector<int32_t> values;
  if (!of.program || of.dag().loop.inductions.size() != 1)
    return values;
  for (uint64_t trip = 0; trip < of.dag().loop.trips; ++trip)
    values.push_back(int32_t(of.dag().loop.inductions[0].at(trip)));
  return values;
}

TEST(RolledLoop, OneTripStandsForAll) {
  Imported of = imported(increment() + loop(eight, increment() + increment()) +
                         increment());
  EXPECT_EQ(of.dag().loop.trips, 8u);
  EXPECT_NE(of.dag().loop.location.find("test.mlir:"), std::string::npos);
  EXPECT_EQ(phases(of), (Phases{Phase::Prologue, Phase::Replay, Phase::Replay,
                                Phase::Epilogue}));
  EXPECT_TRUE(of.dag().loop.inductions.empty());
  // What goes from trip to trip cannot share its bytes.
  for (const Buffer &buffer : of.dag().buffers)
    if (!buffer.device.isHost()) {
      EXPECT_EQ(buffer.role, buffer.name == "a" ? BufferRole::Resident
                                                : BufferRole::Temporary)
          << buffer.name;
    }
  // Each follows the one before; the trips' own order needs no edge.
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  for (const DepEdge &edge : of.dag().edges)
    edges.emplace_back(edge.from.value, edge.to.value);
  EXPECT_EQ(edges, (std::vector<std::pair<uint32_t, uint32_t>>{
                       {0, 1}, {1, 2}, {2, 3}}));
}

TEST(RolledLoop, BuffersMadeBeforeItLiveFromTripToTrip) {
  // Only the loop uses it, and each trip reads what the one before wrote.
  Imported of = imported(loop(eight, increment()));
  for (const Buffer &buffer : of.dag().buffers)
    if (buffer.name == "a") {
      EXPECT_EQ(buffer.role, BufferRole::Resident);
    }
}

TEST(RolledLoop, ShortLoopsAreUnrolled) {
  Imported seven =
      imported(loop("%c1 to %c8 step %c1", increment() + increment()));
  EXPECT_EQ(seven.dag().loop.trips, 1u);
  EXPECT_EQ(seven.dag().nodes.size(), 14u);
  ImportOptions options;
  options.rollFrom = 7;
  EXPECT_EQ(imported(loop("%c1 to %c8 step %c1", increment()), "", options)
                .dag()
                .nodes.size(),
            1u);
  options.rollFrom = 0;
  EXPECT_EQ(imported(loop(eight, increment()), "", options).dag().nodes.size(),
            8u);
}

TEST(RolledLoop, TheLoopWithTheMostWorkIsTheOne) {
  Imported of = imported(loop(eight, increment()) +
                         loop("%c0 to %c32 step %c1", increment()));
  EXPECT_EQ(of.dag().loop.trips, 32u);
  EXPECT_EQ(of.dag().nodes.size(), 9u);
}

TEST(RolledLoop, NestedLoopsAreUnrolledInIt) {
  std::string inner =
      "  scf.for %r = %c0 to %c32 step %c8 {\n" + increment() + "  }\n";
  Imported of = imported(loop(eight, inner));
  EXPECT_EQ(of.dag().loop.trips, 8u);
  EXPECT_EQ(of.dag().nodes.size(), 4u);
}

TEST(RolledLoop, InductionValuesReachKernels) {
  std::string cast = "  %n = arith.index_cast %q : index to i32\n";
  EXPECT_EQ(valuesOf("%c0 to %c32 step %c2", cast),
            (std::vector<int32_t>{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24,
                                  26, 28, 30}));
  std::string computed = "  %t = arith.muli %q, %c8 : index\n"
                         "  %u = arith.subi %c2, %t : index\n"
                         "  %v = arith.addi %u, %q : index\n"
                         "  %n = arith.index_cast %v : index to i32\n";
  EXPECT_EQ(valuesOf(eight, computed),
            (std::vector<int32_t>{2, -5, -12, -19, -26, -33, -40, -47}));
  // Cut to eight bits the values wrap, so they are not a line once widened.
  std::string wraps = "  %k = arith.constant 100 : i8\n"
                      "  %y = arith.index_cast %q : index to i8\n"
                      "  %t = arith.muli %y, %k : i8\n"
                      "  %n = arith.extsi %t : i8 to i32\n";
  Imported unrolled = imported(loop(eight, wraps + storeN()));
  EXPECT_EQ(unrolled.dag().loop.trips, 1u);
  std::vector<int32_t> scalars;
  for (const DagNode *node : kernelNodes(unrolled.dag()))
    scalars.push_back(int32_t(std::get<uint64_t>(
        std::get<KernelCall>(node->work).arguments[0].value)));
  EXPECT_EQ(scalars,
            (std::vector<int32_t>{0, 100, -56, 44, -112, -12, 88, -68}));
}

TEST(RolledLoop, ScalarsThatStayAreCopiedOnce) {
  std::string body = launch("%d0", "",
                            "    %x = arith.sitofp %s : i32 to f32\n"
                            "    %y = arith.index_cast %q : index to i32\n"
                            "    %z = arith.sitofp %y : i32 to f32\n"
                            "    %w = arith.addf %x, %z : f32\n"
                            "    memref.store %w, %a[%i] : memref<64xf32>\n");
  Imported of =
      imported(loop(eight, body), "%s: i32 {mgpu.role = \"dynamic\"}");
  ASSERT_EQ(of.dag().nodes.size(), 3u) << "two parameters, one kernel";
  std::map<std::string, Phase> copies;
  for (const DagNode &node : of.dag().nodes)
    if (auto *copy = std::get_if<CopyCall>(&node.work))
      copies[of.dag().buffer(copy->source).name] = node.phase;
  EXPECT_EQ(copies, (std::map<std::string, Phase>{{"induction", Phase::Replay},
                                                  {"s", Phase::Prologue}}));
  for (const Buffer &buffer : of.dag().buffers) {
    if (buffer.name == "s.parameter") {
      EXPECT_EQ(buffer.role, BufferRole::Resident);
    }
    if (buffer.name == "induction.parameter") {
      EXPECT_EQ(buffer.role, BufferRole::Temporary);
    }
  }
}

TEST(RolledLoop, BuffersOfOneTripStayTemporary) {
  std::string body =
      "  %x = mgpu.alloc %d0 : !mgpu.device -> memref<64xf32>\n" +
      launch("%d0", "", "    memref.store %one, %x[%i] : memref<64xf32>\n") +
      launch("%d0", "",
             "    %v = memref.load %x[%i] : memref<64xf32>\n"
             "    memref.store %v, %a[%i] : memref<64xf32>\n") +
      "  mgpu.free %x, %d0 : memref<64xf32>, !mgpu.device\n";
  Imported of = imported(loop(eight, body));
  EXPECT_EQ(of.dag().nodes.size(), 2u);
  size_t made = 0;
  for (const Buffer &buffer : of.dag().buffers)
    if (buffer.name.starts_with("x")) {
      ++made;
      EXPECT_EQ(buffer.role, BufferRole::Temporary);
    }
  EXPECT_EQ(made, 1u) << "the second trip's is gone";
}

TEST(RolledLoop, LoadAndFetchStayOutside) {
  std::string in = "  mgpu.memcpy %a, %p, %d0, %host : memref<64xf32>, "
                   "memref<64xf32>, !mgpu.device, !mgpu.device\n";
  std::string out = "  mgpu.memcpy %p, %a, %host, %d0 : memref<64xf32>, "
                    "memref<64xf32>, !mgpu.device, !mgpu.device\n";
  std::string resident = "%p: memref<64xf32> {mgpu.role = \"resident\"}";
  Imported of = imported(in + loop(eight, increment()) + out, resident);
  EXPECT_EQ(phases(of), (Phases{Phase::Load, Phase::Replay, Phase::Fetch}));
  // In the loop they are part of each trip.
  of = imported(loop(eight, in + increment() + out), resident);
  EXPECT_EQ(phases(of), (Phases{Phase::Replay, Phase::Replay, Phase::Replay}));
}

TEST(RolledLoop, CollectivesMatchWithinATrip) {
  auto call = [](const char *device) {
    return fmt::format("  mgpu.all_reduce %{0}, %{0}, %comm, sum : "
                       "memref<64xf32>, memref<64xf32>, !mgpu.communicator\n",
                       device);
  };
  Imported of = imported(loop(eight, call("a") + call("b")));
  EXPECT_EQ(of.dag().loop.trips, 8u);
  EXPECT_EQ(of.dag().nodes.size(), 1u);
  // Rank 1 is one call behind all the way: nothing stands for all trips.
  of = imported(call("a") + loop(eight, call("b") + call("a")) + call("b"));
  EXPECT_EQ(of.dag().loop.trips, 1u);
  EXPECT_EQ(of.dag().nodes.size(), 9u);
}

TEST(RolledLoop, WhatTripsDoToEachOtherIsJudged) {
  // Within a trip all is well; the next overwrites on another stream what
  // this one still reads.
  std::string race =
      launch("%d0", "%s0", "    memref.store %one, %a[%i] : memref<64xf32>\n") +
      "  mgpu.stream_wait %t0, %s0 : !mgpu.stream, !mgpu.stream\n" +
      launch("%d0", "%t0",
             "    %v = memref.load %a[%i] : memref<64xf32>\n"
             "    memref.store %v, %a2[%i] : memref<64xf32>\n");
  Imported of = importText(program(loop(eight, race)));
  EXPECT_FALSE(of.program);
  EXPECT_EQ(of.countErrors("race on buffer 'a'"), 1u) << of.text();
  std::string cured =
      race + "  mgpu.stream_wait %s0, %t0 : !mgpu.stream, !mgpu.stream\n";
  EXPECT_EQ(imported(loop(eight, cured)).dag().loop.trips, 8u);
  // After the loop: the last trip's work may still run.
  of = importText(
      program(loop(eight, cured) +
              launch("%d0", "%s1",
                     "    memref.store %one, %a[%i] : memref<64xf32>\n")));
  EXPECT_FALSE(of.program);
}

TEST(RolledLoop, WhatChangesFromTripToTripIsUnrolled) {
  auto unrolled = [](const std::string &body, size_t nodes) {
    Imported of = imported(loop(eight, body));
    EXPECT_EQ(of.dag().loop.trips, 1u) << body;
    EXPECT_EQ(of.dag().nodes.size(), nodes) << body;
    EXPECT_EQ(of.countWarnings("race"), 0u) << of.text();
  };
  // The bytes of a copy.
  unrolled("  %v = memref.subview %a[%q] [1] [1] : memref<64xf32> to "
           "memref<1xf32, strided<[1], offset: ?>>\n"
           "  %u = memref.subview %b[%q] [1] [1] : memref<64xf32> to "
           "memref<1xf32, strided<[1], offset: ?>>\n"
           "  mgpu.memcpy %u, %v, %d1, %d0 : memref<1xf32, strided<[1], "
           "offset: ?>>, memref<1xf32, strided<[1], offset: ?>>, "
           "!mgpu.device, !mgpu.device\n",
           8);
  // Control flow of the host.
  unrolled("  %first = arith.cmpi eq, %q, %c0 : index\n  scf.if %first {\n" +
               increment() + "  }\n",
           1);
  // Floating point on the host.
  unrolled(
      "  %n0 = arith.index_cast %q : index to i32\n"
      "  %f0 = arith.sitofp %n0 : i32 to f32\n" +
          launch("%d0", "", "    memref.store %f0, %a[%i] : memref<64xf32>\n"),
      8);
}

TEST(RolledLoop, LessExactKernelsAreUnrolledWhereThatTellsMore) {
  // Each trip writes its own element; only the unrolled form knows.
  std::string body = "  mgpu.launch %d0 grid(%c1) block(%c1) stream %s0 {\n"
                     "    memref.store %one, %a[%q] : memref<64xf32>\n  }\n"
                     "  mgpu.launch %d0 grid(%c1) block(%c1) stream %t0 {\n"
                     "    %m = arith.addi %q, %c8 : index\n"
                     "    memref.store %one, %a[%m] : memref<64xf32>\n  }\n";
  Imported of = imported(loop(eight, body));
  EXPECT_EQ(of.dag().loop.trips, 1u);
  EXPECT_TRUE(of.warnings.empty()) << of.text();
  // Where that would be too long, the warnings are the user's to judge.
  ImportOptions options;
  options.nodeLimit = 10;
  of = imported(loop(eight, body), "", options);
  EXPECT_EQ(of.dag().loop.trips, 8u);
  EXPECT_GE(of.countWarnings("possible race on buffer 'a'"), 1u) << of.text();
}

TEST(RolledLoop, TheNodeLimitSaysWhyTheLoopIsUnrolled) {
  ImportOptions options;
  options.nodeLimit = 5;
  Imported of = importText(
      program(loop(eight, "  %n0 = arith.index_cast %q : index to i32\n"
                          "  %f0 = arith.sitofp %n0 : i32 to f32\n" +
                              launch("%d0", "",
                                     "    memref.store %f0, %a[%i] : "
                                     "memref<64xf32>\n"))),
      options);
  ASSERT_TRUE(of.error);
  EXPECT_NE(of.error->message.find("raise --node-limit"), std::string::npos);
  EXPECT_NE(of.error->message.find("changes from trip to trip"),
            std::string::npos)
      << of.error->message;
}

TEST(RolledLoop, AMillionTripsCostTwo) {
  std::string bounds = "  %many = arith.constant 1000000000 : index\n";
  Imported of = imported(bounds + loop("%c0 to %many step %c1", increment()));
  EXPECT_EQ(of.dag().loop.trips, 1'000'000'000u);
  EXPECT_EQ(of.dag().nodes.size(), 1u);
}

} // namespace
} // namespace mgpu::planner

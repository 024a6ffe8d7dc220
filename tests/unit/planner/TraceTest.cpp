// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recorded traces as DAGs: what must follow what, what is said where the trace
// does not know, and what is refused.
#include "planner/cost/TargetMachine.h"
#include "planner/dagfile/TraceDag.h"
#include "planner/dagfile/TraceEvents.h"
#include "planner/schedule/list/Schedulers.h"

#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::planner;

namespace {

std::string work(const std::string &name, double start, double us, int stream,
                 int correlation, const std::string &more = "",
                 const std::string &category = "kernel", int device = 0) {
  return "{\"ph\":\"X\",\"cat\":\"" + category + "\",\"name\":\"" + name +
         "\",\"pid\":0,\"tid\":7,\"ts\":" + std::to_string(start) +
         ",\"dur\":" + std::to_string(us) +
         ",\"args\":{\"device\":" + std::to_string(device) +
         ",\"stream\":" + std::to_string(stream) +
         ",\"correlation\":" + std::to_string(correlation) + more + "}},\n";
}
std::string wait(int stream, int correlation, int onStream, int record) {
  return "{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"name\":\"Stream Wait "
         "Event\",\"ts\":0,\"dur\":0,\"args\":{\"cuda_sync_kind\":\"Stream "
         "Wait Event\",\"device\":0,\"stream\":" +
         std::to_string(stream) +
         ",\"correlation\":" + std::to_string(correlation) +
         ",\"wait_on_stream\":" + std::to_string(onStream) +
         ",\"wait_on_cuda_event_record_corr_id\":" + std::to_string(record) +
         "}},\n";
}
std::string trace(const std::string &events) {
  return "{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0,\"name\":"
         "\"NVIDIA H100\"}],\"traceEvents\":[\n"
         "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\","
         "\"ts\":1,\"dur\":1,\"args\":{\"correlation\":1}},\n" +
         events +
         "{\"ph\":\"M\",\"name\":\"process_name\",\"args\":{\"name\":\"x\"}}"
         "],\"traceName\":\"t.json\"}";
}
Result<RecordedTrace> read(const std::string &text) {
  MGPU_TRY_ASSIGN(auto events, readTraceEvents(text, "t.json"));
  return traceDag(std::move(events), "t.json");
}
/// "0>1 0>2": the edges.
std::string edgesOf(const RecordedTrace &trace) {
  std::string text;
  for (const DepEdge &edge : trace.dag.edges)
    text += (text.empty() ? "" : " ") + std::to_string(edge.from.value) + ">" +
            std::to_string(edge.to.value);
  return text;
}
std::string message(const std::string &text) {
  auto result = read(text);
  return result ? "accepted" : result.error().message;
}

// Stream 7: a, b, c; stream 9: a reduction of a's result, which c needs.
const std::string reduction =
    ",\"Collective name\":\"_allgather_base\",\"Group size\":8,\"In msg "
    "nelems\":100,\"Out msg nelems\":800,\"dtype\":\"BFloat16\"";

TEST(Trace, WaitsAreDependences) {
  std::string events = work("a", 100, 10, 7, 10) + wait(9, 12, 7, 11) +
                       work("ncclDevKernel_x", 111, 50, 9, 13, reduction) +
                       work("b", 112, 20, 7, 15) + wait(7, 17, 9, 16) +
                       work("c", 200, 10, 7, 18);
  auto result = read(trace(events));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(edgesOf(*result), "0>1 0>2 1>3 2>3");
  EXPECT_DOUBLE_EQ(result->recordedUs, 110);
  EXPECT_EQ(result->streams, 2u);
  const auto &call = std::get<OpaqueCall>(result->dag.nodes[1].work);
  EXPECT_TRUE(call.isCollective);
  EXPECT_EQ(call.kind, CollectiveKind::AllGather);
  EXPECT_EQ(call.bytes, 1600u);
  EXPECT_EQ(call.group, 8u);
  // The gap in front of c goes.
  const planner::Machine model = planner::hostMachine();
  auto plan = schedule(result->dag, model);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_DOUBLE_EQ(plan->makespanUs, 70);
}

TEST(Trace, WhatAnEventRecordedLaterIsNotWaitedFor) {
  // The event was recorded before b was launched.
  std::string events = work("a", 0, 10, 7, 10) + work("b", 10, 10, 7, 14) +
                       wait(9, 15, 7, 12) + work("c", 20, 10, 9, 16);
  auto result = read(trace(events));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(edgesOf(*result), "0>1 0>2");
  // A wait that does not say when covers all that was launched before it.
  events = work("a", 0, 10, 7, 10) + work("b", 10, 10, 7, 14) +
           wait(9, 15, 7, -1) + work("c", 20, 10, 9, 16);
  result = read(trace(events));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(edgesOf(*result), "0>1 1>2");
  ASSERT_EQ(result->notes.size(), 1u);
  EXPECT_NE(result->notes[0].find("1 waits do not say"), std::string::npos);
}

TEST(Trace, TheHostsWaitsOrderWhatItLaunches) {
  std::string sync = "{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"name\":\"Context "
                     "Sync\",\"ts\":0,\"dur\":1,\"args\":{\"cuda_sync_kind\":"
                     "\"Context Sync\",\"device\":0,\"stream\":-1,"
                     "\"correlation\":20}},\n";
  std::string events = work("a", 0, 10, 7, 10) + work("b", 0, 15, 9, 11) +
                       wait(9, 12, 7, 5) + sync + work("c", 30, 10, 7, 21) +
                       work("d", 31, 10, 9, 22);
  auto result = read(trace(events));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(edgesOf(*result), "0>2 1>2 0>3 1>3");
}

TEST(Trace, WithoutWaitsTimeOrders) {
  std::string events = work("a", 0, 10, 7, 10) + work("b", 5, 10, 9, 11) +
                       work("c", 10, 10, 7, 12) + work("d", 20, 5, 9, 13) +
                       work("e", 25, 5, 9, 14);
  auto result = read(trace(events));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(edgesOf(*result), "0>2 1>3 2>3 3>4");
  ASSERT_EQ(result->notes.size(), 1u);
  EXPECT_NE(result->notes[0].find("no waits between them"), std::string::npos);
}

TEST(Trace, CopiesAndDevicesAreKept) {
  std::string events =
      work("Memcpy HtoD", 0, 10, 7, 10, ",\"bytes\":4096", "gpu_memcpy", 5) +
      work("Memset", 20, 1, 7, 11, "", "gpu_memset", 5) +
      work("k", 0, 10, 7, 12, "", "kernel", 2);
  auto result = read(trace(events));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->dag.numDevices, 2u);
  EXPECT_EQ(result->dag.nodes[0].devices[0].value, 0); // k, on device 2
  EXPECT_EQ(workClass(result->dag.nodes[1]), WorkClass::Copy);
  EXPECT_EQ(result->dag.nodes[1].bytesRead, 4096u);
  EXPECT_EQ(workClass(result->dag.nodes[2]), WorkClass::Kernel);
}

TEST(Trace, IsKnownByItsContent) {
  EXPECT_TRUE(isTrace(trace("")));
  EXPECT_FALSE(isTrace("{\"format\":\"mgpu-dag/2\",\"name\":\"traceEvents\"}"));
  EXPECT_FALSE(isTrace("{\"format\":\"mgpu-dag/"
                       "2\",\"nodes\":[{\"name\":\"\\\"traceEvents\"}]}"));
}

TEST(Trace, WhatIsNoJsonIsMendedInPlace) {
  EXPECT_EQ(mendTrace("[inf, -Infinity,NaN , 1,]"),
            "[-1 , -1       ,-1  , 1 ]");
  EXPECT_EQ(mendTrace("{\"a\\q\\\\\\\"\\u00e4\\users\":null,}"),
            "{\"a/q\\\\\\\"\\u00e4/users\":null }");
  EXPECT_EQ(mendTrace("\"\xff\x01, ]\", infinite"), "\"??, ]\", infinite");
  EXPECT_EQ(mendTrace("\"cut\\"), "\"cut\\");
}

TEST(Trace, FaultsAreNamed) {
  EXPECT_EQ(message(trace("")),
            "t.json: the trace has no kernels or copies of a GPU: profile "
            "with ProfilerActivity.CUDA");
  std::string whole = trace(work("a", 0, 1, 7, 1));
  EXPECT_EQ(message(whole), "accepted");
  for (size_t cut = whole.find("traceEvents") + 20; cut < whole.size(); ++cut)
    EXPECT_EQ(message(whole.substr(0, cut)),
              "t.json: the trace is cut short after " + std::to_string(cut) +
                  " bytes: record it again");
  EXPECT_NE(message(trace("nonsense")).find("t.json: not valid JSON at line "),
            std::string::npos);
  EXPECT_NE(message("{\"traceEvents\":{}}").find("is not an array"),
            std::string::npos);
  EXPECT_NE(message(trace(work("a", -1, 1, 7, 1)))
                .find("event 1 \"a\" of kernel has no usable \"ts\""),
            std::string::npos);
  EXPECT_NE(message(trace(work("a", 1, -1, 7, 1))).find("\"dur\""),
            std::string::npos);
  EXPECT_NE(message(trace(work("a", 1, 1, -7, 1))).find("stream in its args"),
            std::string::npos);
  EXPECT_NE(message(trace("{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\"},"))
                .find("has no usable \"ts\""),
            std::string::npos);
}

} // namespace

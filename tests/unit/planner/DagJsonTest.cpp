// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dagfile/DagJson.h"
#include "planner/dag/ProgramText.h"
#include "planner/schedule/MakePlan.h"
#include "planner/schedule/list/Schedulers.h"
#include "tests/unit/planner/RandomDag.h"

#include <cstdio>
#include <filesystem>
#include <gtest/gtest.h>
#include <zlib.h>

using namespace mgpu;
using namespace mgpu::planner;
using namespace mgpu::planner::testing;

static std::string file(const std::string &nodes, bool spmd = true) {
  return std::string("{\"format\":\"mgpu-dag/2\",\"name\":\"t\",\"devices\":2,"
                     "\"spmd\":") +
         (spmd ? "true" : "false") + ",\"resident_bytes\":10,\"nodes\":[" +
         nodes + "]}";
}
static const char *const twoNodes =
    R"({"id":0,"kind":"kernel","name":"a","flops":5,"bytes_read":1,
        "bytes_written":2,"out_bytes":100,"deps":[],"duration_us":3},
       {"id":1,"kind":"all_reduce","name":"r","bytes":64,"group":2,
        "out_bytes":50,"deps":[0],"workspace_bytes":8,"op":"x"})";

TEST(DagJson, ReadsNodesBuffersAndEdges) {
  Result<Dag> dag = parseDagJson(file(twoNodes), "t.json");
  ASSERT_TRUE(dag) << dag.error().message;
  EXPECT_TRUE(dag->spmd);
  EXPECT_EQ(dag->residentBytes, 10u);
  ASSERT_EQ(dag->nodes.size(), 2u);
  EXPECT_EQ(dag->nodes[0].durationUs, 3.0);
  EXPECT_FALSE(dag->nodes[1].durationUs);
  EXPECT_EQ(std::get<OpaqueCall>(dag->nodes[1].work).bytes, 64u);
  ASSERT_EQ(dag->edges.size(), 1u);
  EXPECT_EQ(dag->edges[0].kind, DepKind::Data);
  ASSERT_EQ(dag->buffers.size(), 3u);
  EXPECT_EQ(dag->buffers[0].role, BufferRole::Temporary);
  EXPECT_EQ(dag->buffers[1].role, BufferRole::Resident) << "nothing reads it";
  EXPECT_EQ(dag->buffers[2].sizeBytes, 8u);
}

TEST(DagJson, ACollectiveNeedsNoNameOfItsOwn) {
  std::string text = twoNodes;
  text.erase(text.find("\"name\":\"r\","), 11);
  Result<Dag> dag = parseDagJson(file(text), "t.json");
  ASSERT_TRUE(dag) << dag.error().message;
  EXPECT_EQ(dag->nodes[1].name, "all_reduce_1");
  text.erase(text.find("\"name\":\"a\","), 11);
  EXPECT_FALSE(parseDagJson(file(text), "t.json")) << "kernels do";
}

TEST(DagJson, AnAliasWritesInPlaceAfterEarlierReaders) {
  Result<Dag> dag = parseDagJson(
      file(R"({"id":0,"kind":"kernel","name":"a","out_bytes":8,"deps":[]},
              {"id":1,"kind":"kernel","name":"b","out_bytes":0,"deps":[0]},
              {"id":2,"kind":"kernel","name":"c","out_bytes":8,"deps":[],
               "alias_of":0})"),
      "t.json");
  ASSERT_TRUE(dag) << dag.error().message;
  EXPECT_EQ(dag->buffers.size(), 1u);
  bool anti = false;
  for (const DepEdge &edge : dag->edges)
    anti |= edge.from == NodeId{1} && edge.to == NodeId{2} &&
            edge.kind == DepKind::Anti;
  EXPECT_TRUE(anti);
}

TEST(DagJson, CollectivesOfAFileThatIsNotSpmdTakeTheirGroup) {
  Result<Dag> dag = parseDagJson(
      file(R"({"id":0,"kind":"kernel","name":"a","device":1,"deps":[]},
              {"id":1,"kind":"broadcast","name":"b","bytes":4,"group":2,
               "deps":[0]})",
           false),
      "t.json");
  ASSERT_TRUE(dag) << dag.error().message;
  EXPECT_EQ(dag->nodes[0].devices, std::vector<DeviceId>{DeviceId{1}});
  EXPECT_EQ(dag->nodes[1].devices.size(), 2u);
}

TEST(DagJson, CopiesFillsAndTheHostHaveResourcesOfTheirOwn) {
  Result<Dag> dag = parseDagJson(
      file(R"({"id":0,"kind":"copy","name":"up","from":"host","to":0,
               "bytes":64,"deps":[],"phase":"load"},
              {"id":1,"kind":"fill","name":"zero","device":1,"bytes":32,
               "deps":[]},
              {"id":2,"kind":"copy","name":"over","from":0,"to":1,"bytes":48,
               "deps":[0]},
              {"id":3,"kind":"host","name":"wait","duration_us":7,"deps":[2],
               "location":"a.mlir:3:1"})",
           false),
      "t.json");
  ASSERT_TRUE(dag) << dag.error().message;
  const auto &nodes = dag->nodes;
  EXPECT_EQ(nodes[0].phase, Phase::Load);
  EXPECT_EQ(workClass(nodes[0]), WorkClass::Copy);
  EXPECT_EQ(nodes[0].devices, std::vector<DeviceId>{DeviceId{0}});
  EXPECT_EQ(workClass(nodes[1]), WorkClass::Kernel);
  EXPECT_EQ(nodes[1].bytesWritten, 32u);
  // It copies what the first copy brought.
  const auto &over = std::get<CopyCall>(nodes[2].work);
  EXPECT_EQ(over.source, std::get<CopyCall>(nodes[0].work).destination);
  EXPECT_EQ(over.sourceBox.sizes, std::vector<int64_t>{48});
  EXPECT_EQ(nodes[2].devices.size(), 2u);
  EXPECT_TRUE(nodes[3].devices.empty());
  EXPECT_EQ(workClass(nodes[3]), WorkClass::Copy);
  EXPECT_EQ(nodes[3].location, "a.mlir:3:1");
  EXPECT_TRUE(hostPlan(*dag));

  auto refused = [&](const std::string &node, bool spmd = false) {
    return !parseDagJson(
        file("{\"id\":0,\"name\":\"n\",\"deps\":[]," + node + "}", spmd),
        "t.json");
  };
  EXPECT_FALSE(refused(R"("kind":"host","duration_us":1)"));
  EXPECT_TRUE(refused(R"("kind":"host")"));
  EXPECT_TRUE(refused(R"("kind":"host","duration_us":1)", true));
  EXPECT_TRUE(refused(R"("kind":"copy","from":0,"bytes":1)"));
  EXPECT_TRUE(refused(R"("kind":"copy","from":9,"to":0,"bytes":1)"));
  EXPECT_TRUE(refused(R"("kind":"kernel","devices":[1,0])"));
  EXPECT_TRUE(refused(R"("kind":"kernel","device":0,"phase":"later")"));
  EXPECT_TRUE(refused(R"("kind":"kernel","device":0,"uses":[{"buffer":0}])"));
}

TEST(DagJson, AProgramAndItsFileHaveTheSamePlan) {
  Machine model = hostModel();
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Dag dag = randomDag(seed, {3, 10, 30, true});
    Result<Plan> plan = hostPlan(dag);
    ASSERT_TRUE(plan);
    std::vector<double> durations(dag.nodes.size());
    for (const PlanStep &step : plan->steps)
      durations[step.node.value] = step.durationUs;
    const std::string text = programJsonText(dag, durations);
    Result<Dag> back = parseDagJson(text, "t.json");
    ASSERT_TRUE(back) << seed << ": " << back.error().message;
    EXPECT_EQ(programJsonText(*back, durations), text);
    Result<Plan> again = hostPlan(*back);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->makespanUs, plan->makespanUs) << seed;
    EXPECT_EQ(again->lowerBoundUs, plan->lowerBoundUs) << seed;
    EXPECT_EQ(again->arenaBytes, plan->arenaBytes) << seed;
  }
}

TEST(DagJson, SharesComeBackFromEveryText) {
  const Dag dag = *parseDagJson(
      file(R"({"id":0,"kind":"kernel","name":"a","deps":[],"sm_share":0.3})"),
      "t");
  EXPECT_EQ(smShare(dag.nodes[0]), 0.3);
  EXPECT_EQ(*parseDagJson(*dagJsonText(dag), "t"), dag);
  Program program;
  program.dag = dag;
  Blobs blobs;
  const BlobReader none =
      [](const std::string &) -> Result<std::vector<std::byte>> {
    return fail(ErrorKind::Invalid, "there are none");
  };
  std::string text = toText(program, blobs);
  Result<Program> back = readProgram(text, none);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->dag, dag);
  text.replace(text.find(" share "), 7, " share 1");
  EXPECT_FALSE(readProgram(text, none)) << text;
}

TEST(DagJson, ErrorsNameNodeAndField) {
  auto message = [](const std::string &text) {
    Result<Dag> dag = parseDagJson(text, "t.json");
    return dag ? "accepted" : dag.error().message;
  };
  auto node = [&](const std::string &fields, bool spmd = true) {
    return message(file("{" + fields + "}", spmd));
  };
  const std::string good = R"("id":0,"kind":"kernel","name":"a","deps":[])";
  EXPECT_EQ(node(good), "accepted");
  EXPECT_EQ(message("[]"), "t.json: the file is not a JSON object");
  EXPECT_EQ(message("{\"format\":\"mgpu-dag/1\"}"),
            "t.json: field \"format\" is \"mgpu-dag/1\"; this version reads "
            "\"mgpu-dag/2\"");
  EXPECT_EQ(message("{\n  x"), "t.json: not valid JSON at line 2, column 3");
  EXPECT_EQ(message("[1e999]"), "t.json: a number in it is too large");
  EXPECT_EQ(message(file("3")), "t.json: node 0 is not a JSON object");
  EXPECT_EQ(node(R"("id":0,"kind":"kernel","name":"a")"),
            "t.json: node 0 \"a\": field \"deps\" must be an array of node "
            "ids");
  EXPECT_EQ(node(R"("id":0,"kind":"kernel","name":"a","deps":[0])"),
            "t.json: node 0 \"a\": field \"deps\" names node 0, but a node may "
            "depend only on earlier ones");
  EXPECT_EQ(node(R"("id":0,"kind":"kernel","name":"a","deps":[-1])"),
            "t.json: node 0 \"a\": field \"deps\" must be an integer from 0 to "
            "4294967295");
  EXPECT_EQ(node(R"("id":4,"kind":"kernel","name":"a","deps":[])"),
            "t.json: node 0 \"a\": field \"id\" is 4; ids must be 0, 1, 2, ... "
            "in the order of the file");
  EXPECT_EQ(
      node(R"("id":0,"kind":"fft","name":"a","deps":[])"),
      "t.json: node 0 \"a\": field \"kind\" is \"fft\", which is not a kind "
      "of node");
  EXPECT_EQ(node(R"("id":0,"kind":"send","name":"a","deps":[])"),
            "t.json: node 0 \"a\": field \"bytes\" is missing");
  EXPECT_EQ(node(good + R"(,"duration_us":-1)"),
            "t.json: node 0 \"a\": field \"duration_us\" must be a number from "
            "0 to 1e18");
  EXPECT_EQ(node(good + R"(,"out_bytes":1e30)"),
            "t.json: node 0 \"a\": field \"out_bytes\" must be an integer from "
            "0 to 4503599627370496");
  const std::string share =
      "t.json: node 0 \"a\": field \"sm_share\" must be above 0 and at most 1";
  EXPECT_EQ(node(good + R"(,"sm_share":0)"), share);
  EXPECT_EQ(node(good + R"(,"sm_share":1.5)"), share);
  EXPECT_EQ(node(good + R"(,"sm_share":1)"), "accepted");
  EXPECT_EQ(node(good + R"(,"device":0,"sm_share":0.5)", false),
            "t.json: node 0 \"a\": field \"sm_share\" is allowed in files that "
            "are spmd; in others a device runs one kernel at a time");
  EXPECT_EQ(node(good, false),
            "t.json: node 0 \"a\": field \"device\" is missing; a file that is "
            "not spmd names the device of each kernel");
  EXPECT_EQ(node(good + R"(,"alias_of":0)"),
            "t.json: node 0 \"a\": field \"alias_of\" names node 0, which is "
            "not an earlier one");
}

TEST(DagJson, ReadsPlainAndCompressedFiles) {
  auto dir = std::filesystem::path(::testing::TempDir());
  std::string plain = (dir / "mgpu_dagjson_test.json").string();
  std::string packed = plain + ".gz";
  std::string text = file(twoNodes);
  FILE *out = fopen(plain.c_str(), "wb");
  ASSERT_TRUE(out);
  fwrite(text.data(), 1, text.size(), out);
  fclose(out);
  gzFile gz = gzopen(packed.c_str(), "wb");
  gzwrite(gz, text.data(), unsigned(text.size()));
  gzclose(gz);
  EXPECT_TRUE(readDagJson(plain));
  EXPECT_TRUE(readDagJson(packed));
  // Cut short, the checksum is missing.
  std::filesystem::resize_file(packed, std::filesystem::file_size(packed) - 9);
  EXPECT_FALSE(readDagJson(packed));
  std::filesystem::remove(plain);
  std::filesystem::remove(packed);
  Result<Dag> absent = readDagJson(plain);
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().message,
            "cannot read '" + plain + "': No such file or directory");
  EXPECT_FALSE(readDagJson(dir.string()));
  EXPECT_FALSE(readDagJson("/dev/zero"));
  Result<Dag> xz = readDagJson("x.json.xz");
  ASSERT_FALSE(xz);
  EXPECT_EQ(xz.error().kind, ErrorKind::Unsupported);
}

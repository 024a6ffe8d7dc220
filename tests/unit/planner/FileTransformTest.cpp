// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Transforms of mgpu-dag/2 files: where each must fire, where it must not, and
// that what is left keeps every dependence between kernels.
#include "planner/dagfile/DagJson.h"
#include "planner/plan/Verify.h"
#include "planner/schedule/MakePlan.h"
#include "planner/schedule/list/Schedulers.h"
#include "support/Random.h"

#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <set>

using namespace mgpu;
using namespace mgpu::planner;

static Dag read(const std::string &nodes, bool spmd = true) {
  auto dag = parseDagJson(
      R"({"format":"mgpu-dag/2","name":"t","devices":8,"spmd":)" +
          std::string(spmd ? "true" : "false") + R"(,"nodes":[)" + nodes + "]}",
      "t.json");
  EXPECT_TRUE(dag) << dag.error().message;
  return std::move(*dag);
}

static Machine h200() { return Machine(*device::openTopology("sim:dgx-h200")); }

/// What a transform did, and what it said of the rest.
struct Outcome {
  uint32_t changes = 0;
  Dag dag;
  std::string left;
};
static Outcome apply(Dag dag, TransformKind kind) {
  Machine machine = h200();
  std::vector<std::string> left;
  auto changes = applyTransform(dag, kind, {&machine, &left});
  EXPECT_TRUE(changes) << changes.error().message;
  std::string lines;
  for (const std::string &line : left)
    lines += line + "\n";
  return {*changes, std::move(dag), lines};
}
static const OpaqueCall &callOf(const Dag &dag, size_t node) {
  return std::get<OpaqueCall>(dag.nodes[node].work);
}

// A kernel, the table's entry of the rank, an all_reduce of 64 MiB, its slice,
// and who uses that.
static std::string sliced(const std::string &from = "",
                          const std::string &to = "") {
  std::string text =
      R"({"id":0,"kind":"kernel","name":"dot.1","out_bytes":67108864,
          "deps":[],"duration_us":900,"op":"matmul"},
         {"id":1,"kind":"kernel","name":"dynamic-slice.1","out_bytes":4,
          "bytes_read":32,"flops":1,"deps":[],"duration_us":2},
         {"id":2,"kind":"all_reduce","name":"r","bytes":67108864,"group":8,
          "out_bytes":67108864,"deps":[0],"duration_us":380},
         {"id":3,"kind":"kernel","name":"dynamic-slice.2","out_bytes":8388608,
          "bytes_read":67108868,"flops":4194304,"deps":[1,2],"duration_us":18},
         {"id":4,"kind":"kernel","name":"use","out_bytes":8,"deps":[3],
          "duration_us":5})";
  if (size_t at = text.find(from); !from.empty()) {
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  }
  return text;
}

TEST(FileTransform, AnAllReduceOfWhichEachRankTakesItsPartIsScattered) {
  Dag source = read(sliced());
  Outcome made = apply(source, TransformKind::Scatter);
  EXPECT_EQ(made.changes, 1u) << made.left;
  EXPECT_EQ(&made.dag.node(NodeId{0}), &source.node(NodeId{0}))
      << "what stays is not copied";
  ASSERT_EQ(made.dag.nodes.size(), 4u) << "the slice goes";
  EXPECT_EQ(callOf(made.dag, 2).kind, CollectiveKind::ReduceScatter);
  EXPECT_EQ(made.dag.nodes[2].outBytes, 8388608u);
  ASSERT_EQ(made.dag.edges.size(), 2u);
  EXPECT_EQ(made.dag.edges[1].from, NodeId{2});
  EXPECT_EQ(made.dag.edges[1].to, NodeId{3});
  // 380 us by the ratio of the two curves.
  Machine machine = h200();
  double ratio =
      machine.collective(CollectiveKind::ReduceScatter, 64 << 20, 8, 1).us /
      machine.collective(CollectiveKind::AllReduce, 64 << 20, 8, 1).us;
  EXPECT_NEAR(*made.dag.nodes[2].durationUs, 380 * ratio, 1e-9);
  EXPECT_LT(ratio, 0.8);
  // Without estimates the DAG is the same but for the duration.
  ASSERT_EQ(*applyTransform(source, TransformKind::Scatter), 1u);
  EXPECT_FALSE(source.nodes[2].durationUs);
  source.nodes[2].durationUs = made.dag.nodes[2].durationUs;
  EXPECT_EQ(source, made.dag);
}

TEST(FileTransform, SeveralSlicesAtOneOffsetAreOne) {
  Outcome made =
      apply(read(sliced() +
                 R"(,{"id":5,"kind":"kernel","name":"dynamic-slice.3",
                "out_bytes":8388608,"deps":[1,2],"duration_us":18})"),
            TransformKind::Scatter);
  EXPECT_EQ(made.changes, 1u) << made.left;
  EXPECT_EQ(made.dag.nodes.size(), 4u);
  // Nothing reads the second: it is a result, and must be kept.
  for (const BufferUse &use : made.dag.nodes[2].uses)
    if (use.writes)
      EXPECT_EQ(made.dag.buffer(use.buffer).role, BufferRole::Resident);
}

TEST(FileTransform, NoScatterWithoutProof) {
  struct Case {
    const char *from, *to, *why;
  } cases[] = {
      {"dynamic-slice.2", "slice.2", "not a slice"},
      {"dynamic-slice.2", "fusion", "not a slice"},
      {"\"flops\":4194304", "\"flops\":67108864", "not a slice"},
      {"\"out_bytes\":8388608", "\"out_bytes\":16777216", "one part per rank"},
      {"\"bytes_read\":32,", "\"bytes_read\":4,", "another part"},
      {"dynamic-slice.1", "constant.1", "another part"},
      {"\"deps\":[1,2]", "\"deps\":[2]", "another part"},
      {"\"deps\":[3]", "\"deps\":[2,3]", "not a slice"},
      {"\"out_bytes\":67108864,\"deps\":[0]", "\"out_bytes\":64,\"deps\":[0]",
       ""},
      {"\"group\":8", "\"group\":4", "one part per rank"},
      {"\"group\":8", "\"group\":1", "one member"},
  };
  for (const Case &each : cases) {
    if (!*each.why)
      continue;
    Outcome made =
        apply(read(sliced(each.from, each.to)), TransformKind::Scatter);
    EXPECT_EQ(made.changes, 0u) << each.to;
    EXPECT_NE(made.left.find(each.why), std::string::npos)
        << each.to << ": " << made.left;
  }
  // Two slices at two offsets are two parts.
  Outcome made = apply(
      read(sliced() +
           R"(,{"id":5,"kind":"kernel","name":"dynamic-slice.4","out_bytes":4,
                "bytes_read":32,"deps":[]},
              {"id":6,"kind":"kernel","name":"dynamic-slice.3",
               "out_bytes":8388608,"deps":[2,5],"duration_us":18})"),
      TransformKind::Scatter);
  EXPECT_EQ(made.changes, 0u);
  EXPECT_NE(made.left.find("several offsets"), std::string::npos) << made.left;
}

TEST(FileTransform, AFileThatIsNotSpmdDoesNotSayWhoTakesWhich) {
  Outcome made = apply(
      read(R"({"id":0,"kind":"kernel","name":"a","device":0,"out_bytes":64,
               "deps":[]},
              {"id":1,"kind":"all_reduce","bytes":64,"group":8,"out_bytes":64,
               "deps":[0]},
              {"id":2,"kind":"all_reduce","bytes":64,"group":8,"out_bytes":64,
               "device":3,"deps":[0]})",
           false),
      TransformKind::Scatter);
  EXPECT_EQ(made.changes, 0u);
  EXPECT_NE(made.left.find("not spmd"), std::string::npos) << made.left;
  EXPECT_NE(made.left.find("one member's part"), std::string::npos);
}

// Four small reductions: 1 and 3 are independent, 5 needs 3, 7 is large.
static const char *const reductions =
    R"({"id":0,"kind":"kernel","name":"a","out_bytes":64,"deps":[],
        "duration_us":1},
       {"id":1,"kind":"all_reduce","name":"x","bytes":64,"group":8,
        "out_bytes":64,"deps":[0],"duration_us":36},
       {"id":2,"kind":"kernel","name":"b","out_bytes":32,"deps":[0],
        "duration_us":1},
       {"id":3,"kind":"all_reduce","name":"y","bytes":32,"group":8,
        "out_bytes":32,"deps":[2],"duration_us":36},
       {"id":4,"kind":"kernel","name":"c","out_bytes":16,"deps":[3],
        "duration_us":1},
       {"id":5,"kind":"all_reduce","name":"z","bytes":16,"group":8,
        "out_bytes":16,"deps":[4],"duration_us":36},
       {"id":6,"kind":"kernel","name":"d","out_bytes":8388608,"deps":[],
        "duration_us":1},
       {"id":7,"kind":"all_reduce","name":"w","bytes":8388608,"group":8,
        "out_bytes":8388608,"deps":[6],"duration_us":72},
       {"id":8,"kind":"kernel","name":"e","out_bytes":4,"deps":[1,5,7],
        "duration_us":1})";

TEST(FileTransform, SmallIndependentReducesStartTogether) {
  Outcome made = apply(read(reductions), TransformKind::Bucket);
  EXPECT_EQ(made.changes, 1u);
  ASSERT_EQ(made.dag.nodes.size(), 8u);
  size_t merged = 0;
  for (size_t i = 0; i < made.dag.nodes.size(); ++i)
    if (made.dag.nodes[i].name == "x.bucket2")
      merged = i;
  ASSERT_NE(merged, 0u);
  EXPECT_EQ(callOf(made.dag, merged).bytes, 96u);
  EXPECT_EQ(made.dag.nodes[merged].outBytes, 96u);
  // Two latencies become one.
  EXPECT_NEAR(*made.dag.nodes[merged].durationUs, 36, 0.2);
  EXPECT_NE(made.left.find("more than 4194304 bytes"), std::string::npos);
  EXPECT_NE(made.left.find("no other small all_reduce"), std::string::npos);
}

TEST(FileTransform, ReducesOfOtherGroupsStayApart) {
  std::string text = reductions;
  text.replace(text.find("\"group\":8"), 9, "\"group\":4");
  EXPECT_EQ(apply(read(text), TransformKind::Bucket).changes, 0u);
}

TEST(FileTransform, ASplitReduceIsItsTwoHalves) {
  Outcome made = apply(read(reductions), TransformKind::Split);
  EXPECT_EQ(made.changes, 4u) << made.left;
  EXPECT_EQ(made.dag.nodes.size(), 13u);
  ASSERT_EQ(callOf(made.dag, 1).kind, CollectiveKind::ReduceScatter);
  ASSERT_EQ(callOf(made.dag, 2).kind, CollectiveKind::AllGather);
  EXPECT_EQ(made.dag.nodes[1].outBytes, 8u);
  EXPECT_EQ(made.dag.nodes[2].outBytes, 64u);
  std::string text = reductions, x = R"("bytes":64,"group":8,
        "out_bytes":64)";
  size_t at = text.find(x);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, x.size(), R"("bytes":60,"group":8,"out_bytes":60)");
  Outcome odd = apply(read(text), TransformKind::Split);
  EXPECT_EQ(odd.changes, 3u);
  EXPECT_NE(odd.left.find("do not divide"), std::string::npos) << odd.left;
}

TEST(FileTransform, AProducerThatCanBeCutIsCutWithItsReduce) {
  auto text = [](const std::string &more) {
    return R"({"id":0,"kind":"kernel","name":"a","out_bytes":64,"deps":[],
               "duration_us":100,"bytes_written":64,"flops":8)" +
           more +
           R"(},{"id":1,"kind":"all_reduce","name":"x","bytes":64,"group":8,
                 "out_bytes":64,"deps":[0],"duration_us":36},
                {"id":2,"kind":"kernel","name":"b","out_bytes":4,"deps":[0,1],
                 "duration_us":7})";
  };
  Outcome made = apply(read(text(",\"splittable\":16")), TransformKind::Chunk4);
  EXPECT_EQ(made.changes, 1u) << made.left;
  ASSERT_EQ(made.dag.nodes.size(), 9u);
  double kernels = 0;
  for (const DagNode &node : made.dag.nodes)
    if (node.name.starts_with("a.chunk")) {
      EXPECT_EQ(node.outBytes, 16u);
      kernels += *node.durationUs;
    }
  EXPECT_GE(kernels, 99.9) << "cutting saves no work";
  // Part k of the one needs part k of the other.
  for (const DepEdge &edge : made.dag.edges) {
    const std::string &from = made.dag.node(edge.from).name,
                      &to = made.dag.node(edge.to).name;
    if (to.starts_with("x"))
      EXPECT_EQ(from.back(), to.back());
  }
  Outcome odd = apply(read(text(",\"splittable\":6")), TransformKind::Chunk4);
  EXPECT_EQ(odd.changes, 0u) << "six rows are not 64 bytes";
  EXPECT_NE(odd.left.find("can be cut with it"), std::string::npos);
  Outcome unknown = apply(read(text("")), TransformKind::Chunk2);
  EXPECT_EQ(unknown.changes, 0u);
  EXPECT_NE(unknown.left.find("\"splittable\""), std::string::npos);
}

TEST(FileTransform, PartsOfAnAxisThatDoesNotDivideAreOfItsRows) {
  Outcome made =
      apply(read(R"({"id":0,"kind":"kernel","name":"a","out_bytes":96,
                     "deps":[],"duration_us":60,"splittable":6},
                    {"id":1,"kind":"all_reduce","name":"x","bytes":96,
                     "group":8,"out_bytes":96,"deps":[0],"duration_us":36})"),
            TransformKind::Chunk4);
  EXPECT_EQ(made.changes, 1u) << made.left;
  ASSERT_EQ(made.dag.nodes.size(), 8u);
  uint64_t kernels = 0, reduces = 0;
  for (const DagNode &node : made.dag.nodes) {
    EXPECT_EQ(node.outBytes % 16, 0u);
    (node.name.starts_with("a") ? kernels : reduces) += node.outBytes;
  }
  EXPECT_EQ(kernels, 96u);
  EXPECT_EQ(reduces, 96u);
  // Each reduction has the part of one kernel.
  EXPECT_EQ(made.dag.edges.size(), 4u);
}

TEST(FileTransform, CopiesOfAFileThatNothingReadsGo) {
  const std::string kernel =
      R"({"id":0,"kind":"kernel","name":"a","device":0,"out_bytes":64,
          "deps":[]},)";
  const std::string copy =
      R"({"id":1,"kind":"copy","name":"c","from":0,"to":0,"bytes":64,
          "deps":[0]},
         {"id":2,"kind":"kernel","name":"b","device":0,"out_bytes":4,)";
  Outcome forwarded = apply(read(kernel + copy + R"("deps":[1]})", false),
                            TransformKind::Copies);
  EXPECT_EQ(forwarded.changes, 1u) << "b reads what a made";
  EXPECT_EQ(forwarded.dag.nodes.size(), 2u);
  ASSERT_EQ(forwarded.dag.edges.size(), 1u);
}

/// A random step of training: kernels, reductions, slices of them.
static Dag randomFile(uint64_t seed, bool spmd) {
  Random random(seed);
  std::string text;
  uint32_t id = 0;
  std::vector<uint32_t> open;
  auto deps = [&](uint32_t most) {
    std::set<uint32_t> chosen;
    for (uint64_t k = random.below(most + 1); k > 0 && !open.empty(); --k)
      chosen.insert(open[random.below(open.size())]);
    return fmt::format("{}", fmt::join(chosen, ","));
  };
  auto add = [&](const std::string &fields) {
    text += fmt::format("{}{{\"id\":{},{}}}", id ? "," : "", id, fields);
    return id++;
  };
  auto kernel = [&](const std::string &name, uint64_t bytes,
                    const std::string &on, const std::string &more = "") {
    return add(fmt::format(
        R"("kind":"kernel","name":"{}","out_bytes":{},"deps":[{}],)"
        R"("duration_us":{}{}{})",
        name, bytes, on, 1 + random.below(90),
        spmd ? "" : fmt::format(R"(,"device":{})", random.below(8)), more));
  };
  uint32_t offset =
      kernel("dynamic-slice.0", 4, "", R"(,"bytes_read":32,"flops":1)");
  for (uint64_t k = 0; k < 12; ++k) {
    uint64_t bytes = 64 << random.below(20);
    uint32_t made = kernel("k", bytes, deps(3),
                           random.below(2) ? R"(,"splittable":16)" : "");
    open.push_back(made);
    if (random.below(4) == 0)
      continue;
    uint32_t reduced = add(fmt::format(
        R"("kind":"{}","name":"c{}","bytes":{},"out_bytes":{},"group":8,)"
        R"("deps":[{}],"duration_us":{})",
        random.below(4) ? "all_reduce" : "all_gather", k, bytes, bytes, made,
        30 + random.below(100)));
    if (random.below(2)) {
      open.push_back(kernel(fmt::format("dynamic-slice.{}", k + 1), bytes / 8,
                            fmt::format("{},{}", offset, reduced)));
      if (random.below(3) == 0)
        open.push_back(reduced);
    } else {
      open.push_back(reduced);
    }
  }
  return read(text, spmd);
}

/// Which kernels, by name and number of its kind, lead to which.
static std::set<std::pair<std::string, std::string>> leads(const Dag &dag) {
  size_t n = dag.nodes.size();
  std::vector<std::vector<bool>> reach(n, std::vector<bool>(n, false));
  for (const DepEdge &edge : dag.edges) { // sorted by target
    uint32_t from = edge.from.value, to = edge.to.value;
    reach[to][from] = true;
    for (size_t k = 0; k < n; ++k)
      if (reach[from][k])
        reach[to][k] = true;
  }
  auto name = [&](size_t i) {
    std::string text = dag.nodes[i].name;
    return text.substr(0, text.find(".chunk"));
  };
  std::set<std::pair<std::string, std::string>> found;
  for (size_t i = 0; i < n; ++i)
    for (size_t k = 0; k < n; ++k)
      if (reach[i][k] && workClass(dag.nodes[i]) == WorkClass::Kernel &&
          workClass(dag.nodes[k]) == WorkClass::Kernel)
        found.emplace(name(k), name(i));
  return found;
}

TEST(FileTransform, EveryPlanOfEveryTransformPassesVerifyAndKeepsTheOrder) {
  Machine machine = h200();
  std::map<std::string, uint32_t> changes;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Dag source = randomFile(seed, seed % 4 != 3);
    // Kernels get names of their own.
    for (size_t i = 0; i < source.nodes.size(); ++i)
      if (source.nodes[i].name == "k")
        source.nodes[i].name = fmt::format("k{}", i);
    auto before = leads(source);
    std::vector<std::pair<std::string, std::vector<TransformKind>>> trials;
    for (TransformKind kind : allTransforms)
      trials.push_back({std::string(toString(kind)), {kind}});
    trials.push_back({"all", std::vector(std::begin(allTransforms),
                                         std::end(allTransforms))});
    for (const auto &[name, kinds] : trials) {
      Dag dag = source;
      auto count = applyTransforms(dag, kinds, {&machine, nullptr});
      ASSERT_TRUE(count) << count.error().message;
      changes[name] += *count;
      ASSERT_TRUE(dag.check()) << name;
      // What led to what still does; slices may have gone, and what is
      // scattered asks for no offset.
      std::set<std::string> alive;
      for (const DagNode &node : dag.nodes)
        alive.insert(node.name.substr(0, node.name.find(".chunk")));
      auto after = leads(dag);
      for (const auto &pair : before)
        if (pair.first != "dynamic-slice.0" && alive.count(pair.first) &&
            alive.count(pair.second))
          ASSERT_TRUE(after.count(pair)) << name << ", seed " << seed << ": "
                                         << pair.first << " -> " << pair.second;
      if (name != "bucket" && name != "all")
        for (const auto &pair : after)
          ASSERT_TRUE(before.count(pair) || pair.first == pair.second)
              << name << ", seed " << seed << ": new " << pair.first << " -> "
              << pair.second;
      PlanRequest options;
      options.seed = seed;
      options.transforms.assign(kinds.begin(), kinds.end());
      exact::Budget budget(1e6, 30);
      auto plan = makePlan(source, machine, options, &budget);
      ASSERT_TRUE(plan) << name << ": " << plan.error().message;
      const Dag &of = plan->dag ? *plan->dag : source;
      auto verdict = verify(plan->plan, of);
      ASSERT_TRUE(verdict) << name << ": " << verdict.error().message;
      // The text of the DAG reads back as what was planned.
      auto text = dagJsonText(dag);
      ASSERT_TRUE(text) << text.error().message;
      auto back = parseDagJson(*text, "back.json");
      ASSERT_TRUE(back) << back.error().message;
      ASSERT_EQ(back->nodes.size(), dag.nodes.size());
      ASSERT_EQ(back->edges.size(), dag.edges.size());
      for (size_t i = 0; i < dag.nodes.size(); ++i) {
        EXPECT_EQ(back->nodes[i].durationUs, dag.nodes[i].durationUs);
        EXPECT_EQ(back->nodes[i].outBytes, dag.nodes[i].outBytes);
        EXPECT_EQ(callOf(*back, i), callOf(dag, i)) << name;
      }
      for (size_t e = 0; e < dag.edges.size(); ++e)
        EXPECT_EQ(back->edges[e].from, dag.edges[e].from);
    }
  }
  for (const char *name : {"scatter", "bucket", "chunk2", "chunk8", "split"})
    EXPECT_GT(changes[name], 20u) << name;
}

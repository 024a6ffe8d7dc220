// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One training step of Llama 3.1 8B, from the public data directory MGPU_DATA.
#include "planner/dagfile/DagJson.h"
#include "planner/plan/ArenaLayout.h"
#include "planner/schedule/ProgramSearch.h"
#include "planner/schedule/Timeline.h"
#include "tests/unit/planner/RandomDag.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <memory>

using namespace mgpu;
using namespace mgpu::planner;
using namespace mgpu::planner::testing;

static std::string unpack(const std::string &path) {
  std::string text;
  std::unique_ptr<FILE, int (*)(FILE *)> pipe(
      popen(("xz -dc '" + path + "'").c_str(), "r"), pclose);
  std::vector<char> chunk(1 << 16);
  while (pipe) {
    size_t got = fread(chunk.data(), 1, chunk.size(), pipe.get());
    if (got == 0)
      break;
    text.append(chunk.data(), got);
  }
  return text;
}

TEST(RealDag, LlamaStepIsPlannedAndVerifiedInUnderASecond) {
  const char *data = std::getenv("MGPU_DATA");
  std::string path =
      std::string(data ? data : "") + "/dags/llama31_8b_bf16_1x8.json.xz";
  if (!data || !std::filesystem::exists(path))
    GTEST_SKIP() << "no llama31_8b_bf16_1x8.json.xz under MGPU_DATA";
  Result<Dag> dag = parseDagJson(unpack(path), path);
  ASSERT_TRUE(dag) << dag.error().message;
  ASSERT_EQ(dag->nodes.size(), 10008u);
  Machine model = hostModel();
  auto start = std::chrono::steady_clock::now();
  Result<Plan> plan = schedule(*dag, model);
  ASSERT_TRUE(plan) << plan.error().message;
  auto planned = std::chrono::steady_clock::now();
  Result<void> verdict = verify(*plan, *dag);
  auto verified = std::chrono::steady_clock::now();
  ASSERT_TRUE(verdict) << verdict.error().message;
  auto ms = [](auto from, auto to) {
    return std::chrono::duration<double, std::milli>(to - from).count();
  };
  ArenaLayout layout = layoutArena(*plan, *dag);
  Result<ProgramModel> bounded = modelOf(*dag, model);
  ASSERT_TRUE(bounded) << bounded.error().message;
  setBound(*plan, bounded->bound.us, bounded->bound.by);
  PlanSummary summary = summarize(*plan, *dag);
  PlanSummary serial = summarize(*schedule(*dag, model, {"serial"}), *dag);
  printf("makespan %.1f ms, bound %.1f ms, ratio %.4f; serial %.1f ms; exposed "
         "%.1f ms\narena %.2f GB (bound %.2f) of %.2f GB; plan %.0f ms, verify "
         "%.0f ms\n",
         plan->makespanUs / 1e3, plan->lowerBoundUs / 1e3, summary.ratio,
         serial.makespanUs / 1e3, summary.devices[0].exposedUs / 1e3,
         double(summary.arenaBytes) / 1e9,
         double(layout.lowerBoundBytes[0]) / 1e9,
         double(summary.bufferBytes) / 1e9, ms(start, planned),
         ms(planned, verified));
  EXPECT_GE(plan->makespanUs, plan->lowerBoundUs);
  EXPECT_LT(summary.ratio, 1.2);
  EXPECT_LT(plan->makespanUs, serial.makespanUs);
  // Well under a second on an idle machine; this allows for a busy one.
  EXPECT_LT(ms(start, verified), 5000);
}

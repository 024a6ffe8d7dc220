// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Host control flow: what is unrolled, how often, and where it ends.
#include "ImportText.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace mgpu::planner {
namespace {

/// Stores the i32 %n, which becomes the kernel's scalar argument.
const std::string storeN =
    launch("%d0", "",
           "    %f = arith.sitofp %n : i32 to f32\n"
           "    memref.store %f, %a[%i] : memref<64xf32>\n");
const std::string castQ = "  %n = arith.index_cast %q : index to i32\n";

/// The scalar argument of each launch, in order.
std::vector<int32_t> scalarsOf(const Imported &imported) {
  std::vector<int32_t> values;
  if (imported.program)
    for (const DagNode *node : kernelNodes(imported.dag()))
      values.push_back(int32_t(std::get<uint64_t>(
          std::get<KernelCall>(node->work).arguments[0].value)));
  return values;
}
std::vector<int32_t> scalarsOf(const std::string &body,
                               const ImportOptions &options = {},
                               const std::string &arguments = "") {
  Imported imported = importText(program(body, arguments), options);
  EXPECT_TRUE(imported.program) << imported.text();
  return scalarsOf(imported);
}
using Scalars = std::vector<int32_t>;

std::string loop(const std::string &name, int64_t lower, int64_t upper,
                 int64_t step, const std::string &body) {
  return fmt::format("  %l{0} = arith.constant {1} : index\n"
                     "  %u{0} = arith.constant {2} : index\n"
                     "  %t{0} = arith.constant {3} : index\n"
                     "  scf.for %{0} = %l{0} to %u{0} step %t{0} {{\n{4}  }}\n",
                     name, lower, upper, step, body);
}

TEST(Loop, UnrollsInOrder) {
  EXPECT_EQ(scalarsOf(loop("q", -2, 9, 5, castQ + storeN)),
            (Scalars{-2, 3, 8}));
  EXPECT_EQ(scalarsOf(loop("q", 3, 3, 1, castQ + storeN)), Scalars{});
  EXPECT_EQ(scalarsOf(loop("q", 5, 3, 1, castQ + storeN)), Scalars{});
  EXPECT_EQ(scalarsOf(loop("q", 5, 6, 1000, castQ + storeN)), Scalars{5});
}

TEST(Loop, BoundsAtTheEndsOfTheirType) {
  EXPECT_EQ(scalarsOf(loop("q", INT64_MAX - 3, INT64_MAX, 2, castQ + storeN)),
            (Scalars{-4, -2}));
  EXPECT_EQ(
      scalarsOf(loop("q", INT64_MIN, INT64_MAX, INT64_MAX, castQ + storeN)),
      (Scalars{0, -1, -2}));
}

TEST(Loop, NestsAndCarriesValues) {
  std::string inner = "  %n = arith.addi %m, %m : i32\n" + storeN;
  EXPECT_EQ(
      scalarsOf(loop("q", 0, 2, 1,
                     loop("r", 0, 2, 1,
                          "  %ten = arith.constant 10 : index\n"
                          "  %tens = arith.muli %q, %ten : index\n"
                          "  %sum = arith.addi %tens, %r : index\n"
                          "  %n = arith.index_cast %sum : index to i32\n" +
                              storeN))),
      (Scalars{0, 1, 10, 11}));
  // Fibonacci in iter_args, swapped by the yield.
  std::string carried =
      "  %i0 = arith.constant 0 : i32\n  %i1 = arith.constant 1 : i32\n"
      "  %n, %next = scf.for %q = %c0 to %c8 step %c1 iter_args(%x = %i0, %y = "
      "%i1) -> (i32, i32) {\n    %sum = arith.addi %x, %y : i32\n"
      "    scf.yield %y, %sum : i32, i32\n  }\n" +
      storeN;
  EXPECT_EQ(scalarsOf(carried), Scalars{21});
}

TEST(Loop, BuffersCarriedBySwap) {
  // Double buffering: which buffer a launch writes changes every trip.
  std::string body =
      "  %r:2 = scf.for %q = %c0 to %c8 step %c1 iter_args(%u = %a, %w = %a2) "
      "-> (memref<64xf32>, memref<64xf32>) {\n" +
      launch("%d0", "", "    memref.store %one, %u[%i] : memref<64xf32>\n") +
      "    scf.yield %w, %u : memref<64xf32>, memref<64xf32>\n  }\n";
  Imported imported = importText(program(body));
  ASSERT_TRUE(imported.program) << imported.text();
  auto nodes = kernelNodes(imported.dag());
  ASSERT_EQ(nodes.size(), 8u);
  for (size_t k = 0; k < 8; ++k) {
    ASSERT_EQ(nodes[k]->uses.size(), 1u);
    EXPECT_EQ(imported.dag().buffer(nodes[k]->uses[0].buffer).name,
              k % 2 ? "a2" : "a");
  }
  EXPECT_EQ(imported.dag().kernels.size(), 1u);
}

TEST(Loop, NodeLimit) {
  ImportOptions options;
  options.nodeLimit = 100;
  options.rollFrom = 0;
  std::string body = loop("q", 0, 100, 1, castQ + storeN);
  EXPECT_EQ(scalarsOf(body, options).size(), 100u);
  Imported over = importText(
      program(loop("q", 0, 1'000'000'000, 1, castQ + storeN)), options);
  EXPECT_FALSE(over.program);
  EXPECT_EQ(over.countErrors("more than 100 nodes; raise --node-limit"), 1u)
      << over.text();
}

TEST(Loop, WhileAndIfOnConstants) {
  std::string body =
      "  %start = arith.constant 1 : i32\n  %limit = arith.constant 50 : i32\n"
      "  %end = scf.while (%n = %start) : (i32) -> i32 {\n"
      "    %go = arith.cmpi slt, %n, %limit : i32\n"
      "    scf.condition(%go) %n : i32\n  } do {\n  ^bb0(%n: i32):\n" +
      storeN +
      "    %three = arith.constant 3 : i32\n"
      "    %more = arith.muli %n, %three : i32\n    scf.yield %more : i32\n"
      "  }\n"
      "  %even = arith.cmpi eq, %end, %limit : i32\n"
      "  %n = scf.if %even -> i32 {\n    scf.yield %start : i32\n  } else {\n"
      "    scf.yield %limit : i32\n  }\n" +
      storeN;
  EXPECT_EQ(scalarsOf(body), (Scalars{1, 3, 9, 27, 50}));
}

TEST(Loop, SpecialisedBoundsAndTheirAbsence) {
  std::string body =
      "  scf.for %q = %c0 to %count step %c1 {\n" + castQ + storeN + "  }\n";
  ImportOptions options;
  for (const char *key : {"count", "0"}) {
    options.scalars = {{key, "3"}};
    EXPECT_EQ(scalarsOf(body, options, "%count: index"), (Scalars{0, 1, 2}));
  }
  Imported missing = importText(program(body, "%count: index"));
  ASSERT_TRUE(missing.error);
  EXPECT_EQ(missing.error->kind, ErrorKind::Usage);
  EXPECT_NE(missing.error->message.find("--arg count=NUMBER"),
            std::string::npos)
      << missing.error->message;
}

TEST(Loop, StepMustBePositive) {
  for (int step : {0, -1}) {
    Imported imported = importText(program(loop("q", 0, 8, step, "")));
    EXPECT_FALSE(imported.program);
    EXPECT_EQ(imported.countErrors("it must be positive"), 1u)
        << imported.text();
  }
}

TEST(Loop, CallsAreFollowedRecursionIsNot) {
  std::string helper =
      "func.func private @twice(%m: memref<64xf32>, %d: !mgpu.device) {\n"
      "  %c1 = arith.constant 1 : index\n  %c64 = arith.constant 64 : index\n"
      "  %one = arith.constant 1.0 : f32\n";
  std::string call = "func.call @twice(%m, %d) : (memref<64xf32>, "
                     "!mgpu.device) -> ()\n";
  std::string body = "  func.call @twice(%a, %d0) : (memref<64xf32>, "
                     "!mgpu.device) -> ()\n"
                     "  func.call @twice(%b, %d1) : (memref<64xf32>, "
                     "!mgpu.device) -> ()\n";
  Imported imported = importText(
      program(body) + helper +
      launch("%d", "", "    memref.store %one, %m[%i] : memref<64xf32>\n") +
      "  return\n}\n");
  ASSERT_TRUE(imported.program) << imported.text();
  auto nodes = kernelNodes(imported.dag());
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0]->devices, std::vector<DeviceId>{{0}});
  EXPECT_EQ(nodes[1]->devices, std::vector<DeviceId>{{1}});
  Imported recursive =
      importText(program(body) + helper + "  " + call + "  return\n}\n");
  ASSERT_TRUE(recursive.error);
  EXPECT_EQ(recursive.error->kind, ErrorKind::Unsupported);
  EXPECT_EQ(recursive.countErrors("recursion cannot be captured"), 1u);
}

} // namespace
} // namespace mgpu::planner

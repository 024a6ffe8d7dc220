// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// memref.atomic_rmw and memref.generic_atomic_rmw in kernels.
#include "KernelRunner.h"

#include <gtest/gtest.h>

#include <cmath>

namespace mgpu::kernels {
namespace {

/// Every thread applies `body` (of %old, giving %new) to element %slot =
/// thread % 3 of a 2 x 3 buffer's second row and keeps what it found.
std::string generic(const std::string &type, const std::string &body) {
  std::string row = "memref<2x3x" + type + ">",
              kept = "memref<48x" + type + ">";
  return module("%x: " + row + ", %found: " + kept +
                    ", %unused: memref<2xbf16>",
                R"(
    %t = gpu.global_id x
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %slot = arith.remui %t, %c3 : index
    %r = memref.generic_atomic_rmw %x[%c1, %slot] : )" +
                    row + " {\n^bb0(%old: " + type + "):\n" + body +
                    "\nmemref.atomic_yield %new : " + type +
                    "\n}\nmemref.store %r, %found[%t] : " + kept);
}

template <typename T>
void testGeneric(const std::string &type, const std::string &body,
                 T (*step)(T)) {
  for (const char *cpu : {"native", "x86-64-v2"}) {
    auto kernel = load(generic(type, body), {16}, cpu);
    ASSERT_TRUE(kernel);
    std::vector<T> x{T(9), T(9), T(9), T(1), T(2), T(3)}, found(48);
    std::vector<uint16_t> unused(2);
    std::vector<T> expected = x, expectedFound(48);
    // The host target runs one block after another and threads in their order.
    for (int t = 0; t < 48; ++t) {
      T &element = expected[3 + t % 3];
      expectedFound[t] = element;
      element = step(element);
    }
    kernel->run({3}, {arg(x), arg(found), arg(unused)});
    EXPECT_TRUE(sameBits(x, expected)) << type << " " << cpu;
    EXPECT_TRUE(sameBits(found, expectedFound)) << type << " " << cpu;
  }
}

TEST(HostAtomic, GenericOnElementsOfEachWidth) {
  testGeneric<int32_t>("i32", R"(
    %c7 = arith.constant 7 : i32
    %m = arith.muli %old, %c7 : i32
    %new = arith.xori %m, %old : i32)",
                       [](int32_t x) { return int32_t(uint32_t(x) * 7u) ^ x; });
  testGeneric<int64_t>("i64", R"(
    %three = arith.constant 3 : i64
    %new = arith.addi %old, %three : i64)",
                       [](int64_t x) { return x + 3; });
  testGeneric<int8_t>("i8", R"(
    %c5 = arith.constant 5 : i8
    %new = arith.muli %old, %c5 : i8)",
                      [](int8_t x) { return int8_t(x * 5); });
  testGeneric<float>("f32", R"(
    %h = arith.constant 1.5 : f32
    %new = arith.mulf %old, %h : f32)",
                     [](float x) { return x * 1.5f; });
  testGeneric<double>("f64", R"(
    %h = arith.constant 0.75 : f64
    %new = arith.mulf %old, %h : f64)",
                      [](double x) { return x * 0.75; });
  testGeneric<_Float16>("f16", R"(
    %h = arith.constant 1.25 : f16
    %new = arith.mulf %old, %h : f16)",
                        [](_Float16 x) { return _Float16(float(x) * 1.25f); });
}

TEST(HostAtomic, GenericMayBranch) {
  // A bounded counter: the body chooses between two values.
  testGeneric<int32_t>("i32", R"(
    %c1_i = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %c0 = arith.constant 0 : i32
    %full = arith.cmpi sge, %old, %c8 : i32
    %up = arith.addi %old, %c1_i : i32
    %new = arith.select %full, %c0, %up : i32)",
                       [](int32_t x) { return x >= 8 ? 0 : x + 1; });
}

template <typename T>
std::vector<T> runKind(const std::string &kind, const std::string &type,
                       std::vector<T> values, T start) {
  std::string n = std::to_string(values.size());
  auto kernel = load(
      module("%x: memref<1x" + type + ">, %v: memref<" + n + "x" + type + ">",
             "%t = gpu.global_id x\n%c0 = arith.constant 0 : index\n"
             "%e = memref.load %v[%t] : memref<" +
                 n + "x" + type + ">\n%r = memref.atomic_rmw " + kind +
                 " %e, %x[%c0] : (" + type + ", memref<1x" + type + ">) -> " +
                 type),
      {uint32_t(values.size())});
  std::vector<T> x{start};
  if (kernel)
    kernel->run({1}, {arg(x), arg(values)});
  return x;
}

TEST(HostAtomic, EveryKind) {
  std::vector<int32_t> numbers{3, -7, 12, 5};
  struct {
    const char *kind;
    int32_t expected;
  } const integer[] = {{"addi", 23}, {"muli", -12600}, {"maxs", 12},
                       {"mins", -7}, {"maxu", -7},     {"minu", 3},
                       {"andi", 0},  {"ori", -1},      {"assign", 5}};
  for (auto [kind, expected] : integer)
    EXPECT_EQ(runKind<int32_t>(kind, "i32", numbers, 10)[0], expected) << kind;
  EXPECT_EQ(runKind<int32_t>("xori", "i32", numbers, 10)[0],
            10 ^ 3 ^ -7 ^ 12 ^ 5);
  std::vector<float> reals{3, -7.5f, 12, 0.25f};
  EXPECT_EQ(runKind<float>("addf", "f32", reals, 1)[0], 8.75f);
  EXPECT_EQ(runKind<float>("mulf", "f32", reals, 2)[0], -135.0f);
  EXPECT_EQ(runKind<float>("assign", "f32", reals, 2)[0], 0.25f);
  EXPECT_EQ(runKind<double>("maxnumf", "f64", {1, 4, 2}, 3)[0], 4);
  EXPECT_EQ(runKind<double>("minnumf", "f64", {1, 4, 2}, 3)[0], 1);
  // A NaN stays with maximumf and minimumf and goes with the others.
  std::vector<float> withNan{1, NAN, 2};
  EXPECT_TRUE(std::isnan(runKind<float>("maximumf", "f32", withNan, 0)[0]));
  EXPECT_TRUE(std::isnan(runKind<float>("minimumf", "f32", withNan, 9)[0]));
  EXPECT_EQ(runKind<float>("maxnumf", "f32", withNan, 0)[0], 2);
  EXPECT_EQ(runKind<float>("minnumf", "f32", withNan, 9)[0], 1);
}

TEST(HostAtomic, SmallFloatsAddUp) {
  std::vector<_Float16> halves(64, _Float16(0.5f));
  EXPECT_EQ(float(runKind<_Float16>("addf", "f16", halves, _Float16(1))[0]),
            33);
  // 1 + 2^-8 is halfway and rounds to the even 1 in bf16, each time.
  std::vector<uint16_t> tiny(64, 0x3b80);
  EXPECT_EQ(runKind<uint16_t>("addf", "bf16", tiny, 0x3f80)[0], 0x3f80);
  std::vector<uint16_t> ones(64, 0x3f80);
  EXPECT_EQ(runKind<uint16_t>("addf", "bf16", ones, 0x3f80)[0], 0x4282); // 65
}

TEST(HostAtomic, OddWidthsAreRefused) {
  auto kernel = LoadedKernel::fromText(
      generic("i24", "%new = arith.addi %old, %old : i24"), {16});
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().kind, ErrorKind::Unsupported);
  EXPECT_NE(
      kernel.error().message.find("on elements of 'i24' is not supported"),
      std::string::npos)
      << kernel.error().message;
}

} // namespace
} // namespace mgpu::kernels

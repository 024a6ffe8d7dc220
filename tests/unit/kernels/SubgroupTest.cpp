// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shuffles, rotations and reductions within a subgroup and a block.
#include "KernelRunner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>

namespace mgpu::kernels {
namespace {

TEST(HostSubgroup, ShufflesWithinSubgroupsOf32) {
  constexpr int threads = 80; // the last subgroup is half full
  for (std::string mode : {"xor", "up", "down", "idx"})
    for (int width : {32, 16})
      for (int offset : {1, 5, 12}) {
        auto kernel = load(
            module("%x: memref<80xi32>, %o: memref<80xi32>, %ok: memref<80xi8>",
                   "%offset = arith.constant " + std::to_string(offset) +
                       " : i32\n%width = arith.constant " +
                       std::to_string(width) + R"( : i32
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<80xi32>
    %r, %valid = gpu.shuffle )" +
                       mode + R"( %v, %offset, %width : i32
    %b = arith.extui %valid : i1 to i8
    memref.store %r, %o[%t] : memref<80xi32>
    memref.store %b, %ok[%t] : memref<80xi8>)"),
            {threads});
        ASSERT_TRUE(kernel);
        std::vector<int32_t> x(threads), out(threads), expected(threads);
        std::vector<int8_t> valid(threads), expectedValid(threads);
        for (int t = 0; t < threads; ++t) {
          x[t] = 1000 + 7 * t;
        }
        for (int t = 0; t < threads; ++t) {
          int lane = t % 32;
          int from = mode == "xor"    ? lane ^ offset
                     : mode == "up"   ? lane - offset
                     : mode == "down" ? lane + offset
                                      : offset;
          bool ok = from >= 0 && from < width && lane < width &&
                    t - lane + from < threads;
          expected[t] = ok ? x[t - lane + from] : x[t];
          expectedValid[t] = ok;
        }
        kernel->run({1}, {arg(x), arg(out), arg(valid)});
        EXPECT_EQ(out, expected) << mode << width << " " << offset;
        EXPECT_EQ(valid, expectedValid) << mode << width << " " << offset;
      }
}

TEST(HostSubgroup, ButterflySumInALoopOfShuffles) {
  // The shuffled value is the loop's own argument.
  auto kernel = load(module("%x: memref<64xi32>", R"(
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    %one = arith.constant 1 : i32
    %w = arith.constant 32 : i32
    %v = memref.load %x[%t] : memref<64xi32>
    %sum, %last = scf.for %k = %c0 to %c5 step %c1
        iter_args(%acc = %v, %d = %one) -> (i32, i32) {
      %o, %ok = gpu.shuffle xor %acc, %d, %w : i32
      %n = arith.addi %acc, %o : i32
      %e = arith.shli %d, %one : i32
      scf.yield %n, %e : i32, i32
    }
    memref.store %sum, %x[%t] : memref<64xi32>)"),
                     {64});
  ASSERT_TRUE(kernel);
  std::vector<int32_t> x(64), expected(64);
  for (int t = 0; t < 64; ++t) {
    x[t] = t * t;
    expected[t] = 0;
  }
  for (int t = 0; t < 64; ++t)
    for (int k = 0; k < 32; ++k)
      expected[t] += x[t / 32 * 32 + k];
  kernel->run({1}, {arg(x)});
  EXPECT_EQ(x, expected);
}

TEST(HostSubgroup, SubgroupReduceWithClusters) {
  auto kernel = load(module("%x: memref<80xi32>, %o: memref<3x80xi32>", R"(
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %v = memref.load %x[%t] : memref<80xi32>
    %a = gpu.subgroup_reduce add %v : (i32) -> i32
    %b = gpu.subgroup_reduce maxsi %v cluster(size = 8) : (i32) -> i32
    %c = gpu.subgroup_reduce xor %v cluster(size = 4, stride = 2) : (i32) -> i32
    memref.store %a, %o[%c0, %t] : memref<3x80xi32>
    memref.store %b, %o[%c1, %t] : memref<3x80xi32>
    memref.store %c, %o[%c2, %t] : memref<3x80xi32>)"),
                     {80});
  ASSERT_TRUE(kernel);
  std::vector<int32_t> x(80), out(240), expected(240);
  std::mt19937 engine(9);
  for (int &value : x)
    value = int(engine() % 2000) - 1000;
  for (int t = 0; t < 80; ++t) {
    int sum = 0, high = -100000, parity = 0;
    for (int u = 0; u < 80; ++u) {
      sum += u / 32 == t / 32 ? x[u] : 0;
      high = u / 8 == t / 8 ? std::max(high, x[u]) : high;
      parity ^= u / 8 == t / 8 && u % 2 == t % 2 ? x[u] : 0;
    }
    expected[t] = sum;
    expected[80 + t] = high;
    expected[160 + t] = parity;
  }
  kernel->run({1}, {arg(x), arg(out)});
  EXPECT_EQ(out, expected);
}

/// Loads %v of `type` from %x by thread, runs `body`, stores %r and %valid.
std::string exchange(int threads, const std::string &type,
                     const std::string &body) {
  std::string n = std::to_string(threads),
              of = "memref<" + n + "x" + type + ">",
              flags = "memref<" + n + "xi8>";
  return module("%x: " + of + ", %o: " + of + ", %ok: " + flags,
                "%t = gpu.thread_id x\n%v = memref.load %x[%t] : " + of + "\n" +
                    body +
                    "\n%b = arith.extui %valid : i1 to i8\n"
                    "memref.store %r, %o[%t] : " +
                    of + "\nmemref.store %b, %ok[%t] : " + flags);
}

TEST(HostSubgroup, LanesOutOfRangeAreNotValid) {
  // Offsets that no lane has, negative ones among them; in each mode a lane
  // whose source is not among the first `width` keeps its value.
  constexpr int threads = 64;
  for (std::string mode : {"xor", "up", "down", "idx"})
    for (int width : {8, 16, 32}) {
      auto kernel = load(
          module("%x: memref<64xi64>, %o: memref<64xi64>, %ok: memref<64xi8>, "
                 "%d: i32",
                 "%t = gpu.thread_id x\n%v = memref.load %x[%t] : "
                 "memref<64xi64>\n%width = arith.constant " +
                     std::to_string(width) +
                     " : i32\n%r, %valid = gpu.shuffle " + mode +
                     R"( %v, %d, %width : i64
    %b = arith.extui %valid : i1 to i8
    memref.store %r, %o[%t] : memref<64xi64>
    memref.store %b, %ok[%t] : memref<64xi8>)"),
          {threads});
      ASSERT_TRUE(kernel);
      for (int64_t offset : {0, 3, 7, 8, 15, 16, 31, 32, 33, 1 << 30, -1, -32,
                             INT32_MIN, INT32_MAX}) {
        std::vector<int64_t> x(threads), out(threads), expected(threads);
        std::vector<int8_t> valid(threads), expectedValid(threads);
        for (int t = 0; t < threads; ++t)
          x[t] = 5000000000 + t;
        for (int t = 0; t < threads; ++t) {
          int64_t lane = t % 32, unsignedOffset = uint32_t(offset);
          int64_t from = mode == "xor"    ? lane ^ unsignedOffset
                         : mode == "up"   ? lane - unsignedOffset
                         : mode == "down" ? lane + unsignedOffset
                                          : unsignedOffset;
          bool ok = lane < width && from >= 0 && from < width;
          expectedValid[t] = ok;
          expected[t] = ok ? x[t - lane + from] : x[t];
        }
        kernel->run({1}, {arg(x), arg(out), arg(valid), arg(offset)});
        EXPECT_EQ(out, expected) << mode << width << " " << offset;
        EXPECT_EQ(valid, expectedValid) << mode << width << " " << offset;
      }
    }
}

TEST(HostSubgroup, EachLaneMayReadItsOwnSource) {
  // idx with a source that differs by lane: a bit reversal within 32.
  auto kernel = load(exchange(96, "i32", R"(
    %c32 = arith.constant 32 : index
    %w = arith.constant 32 : i32
    %c5 = arith.constant 5 : i32
    %c7 = arith.constant 7 : i32
    %lane = gpu.lane_id
    %l = arith.index_cast %lane : index to i32
    %m = arith.muli %l, %c5 : i32
    %n = arith.addi %m, %c7 : i32
    %from = arith.remui %n, %w : i32
    %r, %valid = gpu.shuffle idx %v, %from, %w : i32)"),
                     {96});
  ASSERT_TRUE(kernel);
  std::vector<int32_t> x(96), out(96), expected(96);
  std::vector<int8_t> valid(96);
  for (int t = 0; t < 96; ++t) {
    x[t] = t * t;
    int from = t / 32 * 32 + (t % 32 * 5 + 7) % 32;
    expected[t] = from * from;
  }
  kernel->run({1}, {arg(x), arg(out), arg(valid)});
  EXPECT_EQ(out, expected);
  EXPECT_EQ(valid, std::vector<int8_t>(96, 1));
}

template <typename T>
void testRotate(const std::string &type) {
  constexpr int threads = 72; // the last subgroup has 8 lanes
  for (int width : {1, 8, 32})
    for (int offset : {0, 5, 31}) {
      if (offset >= width)
        continue;
      auto kernel = load(exchange(threads, type,
                                  "%r, %valid = gpu.rotate %v, " +
                                      std::to_string(offset) + ", " +
                                      std::to_string(width) + " : " + type),
                         {threads});
      ASSERT_TRUE(kernel);
      std::vector<T> x(threads), out(threads), expected(threads);
      std::vector<int8_t> valid(threads), expectedValid(threads);
      for (int t = 0; t < threads; ++t)
        x[t] = T(2 * t + 1);
      for (int t = 0; t < threads; ++t) {
        int lane = t % 32, from = t - lane + (lane + offset) % width;
        bool ok = lane < width && from < threads;
        expected[t] = ok ? x[from] : x[t];
        expectedValid[t] = ok;
      }
      kernel->run({1}, {arg(x), arg(out), arg(valid)});
      EXPECT_TRUE(sameBits(out, expected)) << type << width << " " << offset;
      EXPECT_EQ(valid, expectedValid) << type << width << " " << offset;
    }
}

TEST(HostSubgroup, RotationsOfEachWidth) {
  testRotate<float>("f32");
  testRotate<double>("f64");
}

TEST(HostSubgroup, ReducesEveryShapeOfCluster) {
  constexpr int threads = 80; // half of the last subgroup
  for (int size : {1, 2, 8, 32})
    for (int stride : {1, 4, 16}) {
      if (size * stride > 32)
        continue;
      auto kernel = load(exchange(threads, "f64",
                                  "%valid = arith.constant true\n%r = "
                                  "gpu.subgroup_reduce add %v cluster(size = " +
                                      std::to_string(size) +
                                      ", stride = " + std::to_string(stride) +
                                      ") : (f64) -> f64"),
                         {threads});
      if (!kernel)
        continue;
      std::vector<double> x(threads), out(threads), expected(threads);
      std::vector<int8_t> valid(threads);
      for (int t = 0; t < threads; ++t)
        x[t] = std::ldexp(1.0, t % 50); // exact, and tells lanes apart
      for (int t = 0; t < threads; ++t)
        for (int u = t / 32 * 32; u < threads && u < t / 32 * 32 + 32; ++u) {
          int span = size * stride;
          if (u % 32 / span == t % 32 / span && u % stride == t % stride)
            expected[t] += x[u];
        }
      kernel->run({1}, {arg(x), arg(out), arg(valid)});
      EXPECT_EQ(out, expected) << size << " " << stride;
    }
}

TEST(HostSubgroup, AllReduceByARegionOfTheKernelsOwn) {
  // (l * 37 + r) mod 1000003 is neither commutative nor associative.
  auto kernel = load(module("%x: memref<64xi64>, %o: memref<64xi64>", R"(
    %i = gpu.global_id x
    %v = memref.load %x[%i] : memref<64xi64>
    %s = gpu.all_reduce %v {
    ^bb0(%l: i64, %r: i64):
      %k = arith.constant 37 : i64
      %p = arith.constant 1000003 : i64
      %m = arith.muli %l, %k : i64
      %n = arith.addi %m, %r : i64
      %q = arith.remui %n, %p : i64
      gpu.yield %q : i64
    } : (i64) -> (i64)
    %d = arith.subi %s, %v : i64
    memref.store %d, %o[%i] : memref<64xi64>)"),
                     {8, 2, 2});
  auto twoDimensional =
      load(module("%x: memref<6x8xf64>, %o: memref<6x8xf64>", R"(
    %i = gpu.global_id x
    %j = gpu.global_id y
    %v = memref.load %x[%j, %i] : memref<6x8xf64>
    %s = gpu.all_reduce %v {
    ^bb0(%l: f64, %r: f64):
      %less = arith.cmpf olt, %l, %r : f64
      %m = arith.select %less, %r, %l : f64
      gpu.yield %m : f64
    } : (f64) -> (f64)
    memref.store %s, %o[%j, %i] : memref<6x8xf64>)"),
           {4, 3});
  ASSERT_TRUE(kernel && twoDimensional);
  std::vector<int64_t> x(64), out(64), expected(64);
  for (int t = 0; t < 64; ++t)
    x[t] = t * t + 1;
  // global_id x is 0..7 in each block: all threads read one of eight values.
  for (int block = 0; block < 2; ++block) {
    std::vector<int64_t> values;
    for (int t = 0; t < 32; ++t)
      values.push_back(x[block * 8 + t % 8]);
    int64_t sum = reducedInOrder(
        values, [](int64_t l, int64_t r) { return (l * 37 + r) % 1000003; });
    for (int t = 0; t < 8; ++t)
      expected[block * 8 + t] = sum - x[block * 8 + t];
  }
  kernel->run({2}, {arg(x), arg(out)});
  EXPECT_EQ(out, expected);
  std::vector<double> y(48), highest(48), expectedHighest(48);
  for (int t = 0; t < 48; ++t)
    y[t] = (t * 29) % 48;
  for (int t = 0; t < 48; ++t)
    for (int u = 0; u < 48; ++u)
      if (u / 8 / 3 == t / 8 / 3 && u % 8 / 4 == t % 8 / 4)
        expectedHighest[t] = std::max(expectedHighest[t], y[u]);
  twoDimensional->run({2, 2}, {arg(y), arg(highest)});
  EXPECT_EQ(highest, expectedHighest);
}

TEST(HostSubgroup, AllReduceOfNarrowAndWideTypes) {
  for (std::string op : {"mul", "maxsi", "minui", "and"}) {
    auto kernel = load(module("%x: memref<40xi8>, %o: memref<40xi8>",
                              R"(
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<40xi8>
    %s = gpu.all_reduce )" + op + R"( %v {} : (i8) -> (i8)
    memref.store %s, %o[%i] : memref<40xi8>)"),
                       {40});
    ASSERT_TRUE(kernel);
    std::vector<int8_t> x(40), out(40);
    for (int t = 0; t < 40; ++t)
      x[t] = int8_t(t * 37 | 1);
    int8_t sum = x[0];
    for (int t = 1; t < 40; ++t)
      sum = int8_t(op == "mul"     ? sum * x[t]
                   : op == "maxsi" ? std::max(sum, x[t])
                   : op == "minui" ? std::min(uint8_t(sum), uint8_t(x[t]))
                                   : sum & x[t]);
    kernel->run({1}, {arg(x), arg(out)});
    EXPECT_EQ(out, std::vector<int8_t>(40, sum)) << op;
  }
}

/// A kernel of 64 threads, on whose %x : memref<64xi32> `body` works; %t is the
/// thread's number, %warp the subgroup's.
std::string ofSubgroups(const std::string &body) {
  return module("%x: memref<64xi32>", R"(
    %t = gpu.thread_id x
    %t32 = arith.index_cast %t : index to i32
    %one = arith.constant 1 : i32
    %w = arith.constant 32 : i32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %warp = gpu.subgroup_id : index
)" + body);
}

// Lanes of a subgroup meet behind a condition that is theirs alone.
TEST(HostSubgroup, UnderControlOfOneWarp) {
  const std::string own = "%first = arith.cmpi eq, %warp, %c0 : index\n",
                    below = "%first = arith.cmpi ult, %t, %c32 : index\n",
                    narrow = "%first = arith.cmpi slt, %t32, %w : i32\n",
                    divided = "%q = arith.divui %t, %c32 : index\n"
                              "%first = arith.cmpi ne, %q, %c1 : index\n";
  struct {
    const char *line;
    int32_t (*result)(int32_t lane);
  } const ops[] = {{"%r, %ok = gpu.shuffle xor %v, %one, %w : i32",
                    [](int32_t lane) { return 3 * (lane ^ 1); }},
                   {"%r, %ok = gpu.rotate %v, 1, 32 : i32",
                    [](int32_t lane) { return 3 * ((lane + 1) % 32); }},
                   {"%r = gpu.subgroup_reduce add %v : (i32) -> i32",
                    [](int32_t) { return 3 * 31 * 16; }}};
  for (const std::string &first : {own, below, narrow, divided})
    for (auto [line, result] : ops) {
      auto kernel = load(ofSubgroups(first + R"(
    scf.if %first {
      %v = memref.load %x[%t] : memref<64xi32>
)" + line + R"(
      memref.store %r, %x[%t] : memref<64xi32>
    } else {
      %v = memref.load %x[%t] : memref<64xi32>
      %n = arith.subi %one, %v : i32
      memref.store %n, %x[%t] : memref<64xi32>
    })"),
                         {64});
      ASSERT_TRUE(kernel);
      std::vector<int32_t> x(64), expected(64);
      for (int32_t t = 0; t < 64; ++t) {
        x[t] = 3 * t;
        expected[t] = t < 32 ? result(t) : 1 - 3 * t;
      }
      kernel->run({1}, {arg(x)});
      EXPECT_EQ(x, expected) << first << line;
    }
}

// As a sum over a block ends: the first subgroup adds in a loop, and one of two
// subgroups behind a second condition passes on its first lane's.
TEST(HostSubgroup, ALoopOfShufflesInOneWarp) {
  auto kernel = load(ofSubgroups(R"(
    %zero = arith.constant 0 : i32
    %c5 = arith.constant 5 : index
    %c64 = arith.constant 64 : index
    %first = arith.cmpi eq, %warp, %c0 : index
    %v = memref.load %x[%t] : memref<64xi32>
    %sum = scf.if %first -> i32 {
      %all = scf.for %k = %c0 to %c5 step %c1 iter_args(%s = %v) -> i32 {
        %k32 = arith.index_cast %k : index to i32
        %step = arith.shli %one, %k32 : i32
        %other, %ok = gpu.shuffle xor %s, %step, %w : i32
        %next = arith.addi %s, %other : i32
        scf.yield %next : i32
      }
      %inner = arith.cmpi ult, %t, %c64 : index
      %kept = scf.if %inner -> i32 {
        %mine = arith.addi %all, %t32 : i32
        %b, %bok = gpu.shuffle idx %mine, %one, %w : i32
        scf.yield %b : i32
      } else {
        scf.yield %zero : i32
      }
      scf.yield %kept : i32
    } else {
      %d = arith.divsi %v, %v : i32
      scf.yield %d : i32
    }
    memref.store %sum, %x[%t] : memref<64xi32>)"),
                     {64});
  ASSERT_TRUE(kernel);
  std::vector<int32_t> x(64), expected(64, 1);
  for (int32_t t = 0; t < 64; ++t) {
    x[t] = t - 64; // not 0, by which the other subgroup divides
    if (t < 32)
      expected[t] = 32 * -64 + 31 * 16 + 1;
  }
  kernel->run({1}, {arg(x)});
  EXPECT_EQ(x, expected);
}

// Each subgroup goes over rows of its own, one more often than the other.
TEST(HostSubgroup, RowsBySubgroups) {
  for (std::string type : {"index", "i32"}) {
    const bool isNarrow = type == "i32";
    auto kernel = load(
        module("%x: memref<160xi32>, %y: memref<7xi32>", std::string(R"(
    %t = gpu.thread_id x
    %lane = gpu.lane_id
    %warp = gpu.subgroup_id : index
    %c0 = arith.constant 0 : index
    %c5 = arith.constant 5 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0 : i32
    %isFirst = arith.cmpi eq, %lane, %c0 : index
    %n = gpu.num_subgroups : index
)") +
                                                             (isNarrow ? R"(
    %low = arith.index_cast %warp : index to i32
    %high = arith.constant 5 : i32
    %step = arith.index_cast %n : index to i32
    %all = scf.for %r = %low to %high step %step iter_args(%sum = %zero) -> i32 : i32 {
      %row = arith.index_cast %r : i32 to index
)"
                                                                       : R"(
    %all = scf.for %row = %warp to %c5 step %n iter_args(%sum = %zero) -> i32 {
)") + R"(
      %first = arith.muli %row, %c32 : index
      %at = arith.addi %first, %lane : index
      %v = memref.load %x[%at] : memref<160xi32>
      %s = gpu.subgroup_reduce add %v : (i32) -> i32
      scf.if %isFirst {
        memref.store %s, %y[%row] : memref<7xi32>
      }
      %next = arith.addi %sum, %s : i32
      scf.yield %next : i32
    }
    scf.if %isFirst {
      %k = arith.addi %warp, %c5 : index
      memref.store %all, %y[%k] : memref<7xi32>
    })"),
        {64});
    ASSERT_TRUE(kernel) << type;
    std::vector<int32_t> x(160), y(7), expected(7);
    for (int32_t k = 0; k < 160; ++k) {
      x[k] = 1000 * (k / 32) + k % 32;
      expected[k / 32] += x[k];
      expected[5 + k / 32 % 2] += x[k];
    }
    kernel->run({1}, {arg(x), arg(y)});
    EXPECT_EQ(y, expected) << type;
  }
}

/// Six sums of a row, of which one needs another and one counts where a number
/// from before the loop is odd.
TEST(HostSubgroup, SumsOfARowMayNeedEachOther) {
  std::string sums, steps, stores;
  for (int k = 0; k < 6; ++k) {
    const std::string n = std::to_string(k);
    sums += (k ? ", %a" : "%a") + n + " = %zero";
    const std::string added = k == 1   ? "%a5"
                              : k == 2 ? "%chosen"
                              : k == 3 ? "%one"
                                       : "%v";
    steps += "%n" + n + " = arith.addf %a" + n + ", " + added + " : f32\n";
    stores += "%s" + n + " = gpu.subgroup_reduce add %r#" + n +
              " : (f32) -> f32\nscf.if %isFirst {\n%k" + n +
              " = arith.constant " + n + " : index\nmemref.store %s" + n +
              ", %y[%row, %k" + n + "] : memref<2x6xf32>\n}\n";
  }
  auto kernel = load(
      module("%x: memref<2x128xf32>, %c: memref<2x32xi32>, %y: memref<2x6xf32>",
             R"(
    %lane = gpu.thread_id x
    %row = gpu.thread_id y
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %i1 = arith.constant 1 : i32
    %isFirst = arith.cmpi eq, %lane, %c0 : index
    %number = memref.load %c[%row, %lane] : memref<2x32xi32>
    %bit = arith.andi %number, %i1 : i32
    %isOdd = arith.cmpi eq, %bit, %i1 : i32
    %r:6 = scf.for %k = %c0 to %c4 step %c1 iter_args()" +
                 sums + R"() -> (f32, f32, f32, f32, f32, f32) {
      %first = arith.muli %k, %c32 : index
      %at = arith.addi %first, %lane : index
      %v = memref.load %x[%row, %at] : memref<2x128xf32>
      %chosen = arith.select %isOdd, %v, %zero : f32
      )" + steps +
                 R"(
      scf.yield %n0, %n1, %n2, %n3, %n4, %n5 : f32, f32, f32, f32, f32, f32
    }
    )" + stores),
      {32, 2});
  ASSERT_TRUE(kernel);
  std::vector<float> x(256), y(12), expected(12);
  std::vector<int32_t> c(64);
  for (size_t t = 0; t < 64; ++t) {
    c[t] = int32_t(t * t / 3);
    float five = 0, *all = &expected[t / 32 * 6];
    for (size_t k = 0; k < 4; ++k) {
      const float v = x[t / 32 * 128 + 32 * k + t % 32] =
          float((7 * t + 5 * k) % 19);
      all[0] += v;
      all[1] += std::exchange(five, five + v);
      all[2] += c[t] % 2 ? v : 0;
      all[3] += 1;
      all[4] += v;
    }
    all[5] += five;
  }
  kernel->run({1}, {arg(x), arg(c), arg(y)});
  EXPECT_EQ(y, expected);
}

// By their places alone, so whatever is read: an error of the program.
TEST(HostSubgroup, LanesThatSurelyPartAreRefusedByName) {
  const std::string alone = R"(
    scf.if %first {
      %v = memref.load %x[%t] : memref<64xi32>
      %r, %ok = gpu.shuffle xor %v, %one, %w : i32
      memref.store %r, %x[%t] : memref<64xi32>
    })",
                    // A loop that is each subgroup's own is not a help there.
      inLoop = R"(
    scf.if %first {
      scf.for %k = %warp to %c32 step %c1 {
        %r, %ok = gpu.shuffle xor %t32, %one, %w : i32
        memref.store %r, %x[%t] : memref<64xi32>
      }
    })",
                    // One lane goes round more often.
      asLoop = R"(
    %c63 = arith.constant 63 : index
    scf.if %first {
    } else {
      scf.for %k = %t to %c63 step %c32 {
        %r, %ok = gpu.shuffle xor %t32, %one, %w : i32
        memref.store %r, %x[%t] : memref<64xi32>
      }
    })",
                    never = "%first = arith.cmpi slt, %one, %one : i32\n";
  const std::pair<std::string, std::string> cases[] = {
      {"%first = arith.cmpi ult, %t, %c1 : index\n", alone},
      {"%first = arith.cmpi ult, %t, %c1 : index\n", inLoop},
      {"%odd = arith.andi %t, %c1 : index\n"
       "%first = arith.cmpi eq, %odd, %c1 : index\n",
       alone},
      {"%e = memref.load %x[%c0] : memref<64xi32>\n"
       "%first = arith.cmpi slt, %e, %one : i32\n",
       asLoop},
      {never, asLoop}};
  for (const auto &[condition, body] : cases) {
    const std::string text = ofSubgroups(condition + body);
    auto kernel = LoadedKernel::fromText(text, {64});
    ASSERT_FALSE(kernel) << text;
    const std::string &message = kernel.error().message;
    EXPECT_EQ(kernel.error().kind, ErrorKind::Invalid) << message;
    EXPECT_NE(message.find("'gpu.shuffle' op is under control flow that is not "
                           "the same for all lanes"),
              std::string::npos)
        << message;
  }
}

// Conditions by place that part nobody who comes, and others that say who
// comes.
TEST(HostSubgroup, LanesThatNeedNotPartAreTrusted) {
  const std::string some = "%some = arith.cmpi ult, %t, %c5 : index\n"
                           "%c5i = arith.constant 5 : i32\n",
                    store = R"(
      %r, %ok = gpu.shuffle xor %t32, %one, %w : i32
      memref.store %r, %x[%t] : memref<64xi32>
)";
  for (std::string body :
       {// Nobody is in both.
        "%late = arith.cmpi uge, %t, %c32 : index\n"
        "scf.if %some {\nmemref.store %c5i, %x[%t] : memref<64xi32>\n"
        "scf.if %late {" +
            store + "}\n}\n",
        // Lanes part after the trips that shuffle.
        "%c2 = arith.constant 2 : index\n"
        "%n = arith.addi %t, %c2 : index\n"
        "scf.for %k = %c0 to %n step %c1 {\n"
        "%early = arith.cmpi ult, %k, %c2 : index\n"
        "scf.if %early {" +
            store + "}\nmemref.store %c5i, %x[%t] : memref<64xi32>\n}\n",
        // Whose lanes would part does not come.
        "%b = gpu.block_id x\n"
        "%mine = arith.cmpi eq, %b, %warp : index\n"
        "%c40 = arith.constant 40 : index\n"
        "%most = arith.cmpi ult, %t, %c40 : index\n"
        "scf.if %mine {\nmemref.store %c5i, %x[%t] : memref<64xi32>\n"
        "scf.if %most {" +
            store + "}\n}\n"}) {
    auto kernel = LoadedKernel::fromText(
        ofSubgroups("%c5 = arith.constant 5 : index\n" + some + body), {64});
    ASSERT_TRUE(kernel) << kernel.error().message << body;
    std::vector<int32_t> x(64, -1);
    (*kernel)->run({1}, {arg(x)});
    const bool byLoop = body.find("scf.for") != std::string::npos,
               byBlock = body.find("block_id") != std::string::npos;
    for (int32_t t = 0; t < 64; ++t)
      EXPECT_EQ(x[t], byLoop              ? 5
                      : byBlock && t < 32 ? t ^ 1
                      : !byBlock && t < 5 ? 5
                                          : -1)
          << t << body;
  }
  // No condition at all.
  EXPECT_TRUE(LoadedKernel::fromText(ofSubgroups("%p = ub.poison : i1\n"
                                                 "scf.if %p {" +
                                                 store + "}"),
                                     {64}));
}

} // namespace
} // namespace mgpu::kernels

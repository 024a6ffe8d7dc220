// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integers, memory, control and lanes.
#include "Meanings.h"

#include <algorithm>

namespace mgpu::kernels {

static constexpr size_t numRead = 256;
static constexpr int64_t least = INT64_MIN;

/// Deeper than conditions are written for all parts of a thread at once.
static constexpr int64_t deepLevels = 9;

/// How many conditions within each other hold.
static std::string deepConditions() {
  std::string body = "%c255 = arith.constant 255 : index\n"
                     "%at = arith.andi %i, %c255 : index\n"
                     "%n = memref.load %x[%at] : memref<256xi64>\n";
  std::string ends;
  for (int64_t k = 0; k < deepLevels; ++k) {
    const std::string n = std::to_string(k);
    body += "%no" + n + " = arith.constant " + n + " : i64\n%t" + n +
            " = arith.constant " + std::to_string(3 * k - 12) + " : i64\n%c" +
            n + " = arith.cmpi sgt, %n, %t" + n + " : i64\n%r" + n +
            " = scf.if %c" + n + " -> (i64) {\n";
    ends = "} else {\nscf.yield %no" + n + " : i64\n}\n" +
           (k > 0 ? "scf.yield %r" + n + " : i64\n" : "") + ends;
  }
  return body + "%all = arith.constant " + std::to_string(deepLevels) +
         " : i64\nscf.yield %all : i64\n" + ends + store("%r0");
}

std::vector<Meaning> meanings() {
  const std::string zero = "%zero = arith.constant 0 : index\n";
  std::vector<Meaning> tests{
      {"conditions_in_conditions", deepConditions(),
       [](const std::vector<int64_t> &x, size_t i) {
         int64_t passed = 0;
         while (passed < deepLevels && x[i % numRead] > 3 * passed - 12)
           ++passed;
         return passed;
       },
       ""},
      {"an_index_that_wraps_in_eight_bits",
       "%c3 = arith.constant 3 : i8\n"
       "%narrow = arith.index_cast %i : index to i8\n"
       "%sum = arith.addi %narrow, %c3 : i8\n"
       "%k = arith.index_castui %sum : i8 to index\n"
       "%v = memref.load %x[%k] : memref<256xi64>\n" +
           store("%v"),
       [](const std::vector<int64_t> &x, size_t i) {
         return x[uint8_t(i + 3)];
       },
       ""},
      {"a_global_index_of_32_bits",
       "%t = gpu.thread_id x\n"
       "%b = gpu.block_id x\n"
       "%d = gpu.block_dim x\n"
       "%t32 = arith.index_cast %t : index to i32\n"
       "%b32 = arith.index_cast %b : index to i32\n"
       "%d32 = arith.index_cast %d : index to i32\n"
       "%first = arith.muli %b32, %d32 : i32\n"
       "%g = arith.addi %first, %t32 : i32\n"
       "%n = arith.constant 300 : i32\n"
       "%in = arith.cmpi slt, %g, %n : i32\n"
       "scf.if %in {\n"
       "%w = arith.extsi %g : i32 to i64\n"
       "%k = arith.index_cast %g : i32 to index\n"
       "memref.store %w, %y[%k] : memref<512xi64>\n"
       "}\n",
       [](const std::vector<int64_t> &, size_t i) {
         return i < 300 ? int64_t(i) : 0;
       },
       ""},
      {"lanes_of_one_subgroup_behind_a_condition",
       "%c1 = arith.constant 1 : index\n"
       "%one = arith.constant 1 : i32\n"
       "%w = arith.constant 32 : i32\n"
       "%warp = gpu.subgroup_id : index\n"
       "%second = arith.cmpi eq, %warp, %c1 : index\n"
       "%n = arith.index_cast %i : index to i32\n"
       "%r = scf.if %second -> i32 {\n"
       "%s, %ok = gpu.shuffle xor %n, %one, %w : i32\n"
       "%sum = gpu.subgroup_reduce add %s : (i32) -> i32\n"
       "%d = arith.subi %sum, %s : i32\n"
       "scf.yield %d : i32\n"
       "} else {\n"
       "scf.yield %n : i32\n"
       "}\n"
       "%v = arith.extsi %r : i32 to i64\n" +
           store("%v"),
       [](const std::vector<int64_t> &, size_t i) -> int64_t {
         const int64_t first = int64_t(i / 32 * 32);
         return i / 32 % 2 ? 32 * first + 31 * 16 - int64_t(i ^ 1) : int64_t(i);
       },
       ""},
      {"rows_of_each_subgroup",
       "%c2 = arith.constant 2 : index\n"
       "%c3 = arith.constant 3 : index\n"
       "%none = arith.constant 0 : i32\n"
       "%warp = gpu.subgroup_id : index\n"
       "%n = arith.index_cast %i : index to i32\n"
       "%all = scf.for %row = %warp to %c3 step %c2 iter_args(%s = %none) -> "
       "i32 {\n"
       "%r = arith.index_cast %row : index to i32\n"
       "%p = arith.muli %r, %n : i32\n"
       "%q = gpu.subgroup_reduce add %p : (i32) -> i32\n"
       "%t = arith.addi %s, %q : i32\n"
       "scf.yield %t : i32\n"
       "}\n"
       "%v = arith.extsi %all : i32 to i64\n" +
           store("%v"),
       [](const std::vector<int64_t> &, size_t i) -> int64_t {
         const int64_t sum = 32 * int64_t(i / 32 * 32) + 31 * 16;
         return i / 32 % 2 ? sum : 2 * sum; // row 1, or rows 0 and 2
       },
       ""},
      {"a_while_of_each_subgroup",
       "%c32 = arith.constant 32 : index\n"
       "%one = arith.constant 1 : i32\n"
       "%three = arith.constant 3 : i32\n"
       "%none = arith.constant 0 : i32\n"
       "%w = arith.constant 32 : i32\n"
       "%lane = gpu.lane_id\n"
       "%own = arith.index_cast %lane : index to i32\n"
       "%group = arith.divui %i, %c32 : index\n"
       "%g = arith.index_cast %group : index to i32\n"
       "%start = arith.addi %g, %one : i32\n"
       "%end, %sum = scf.while (%n = %start, %s = %none) : (i32, i32) -> "
       "(i32, i32) {\n"
       "%f, %ok = gpu.shuffle idx %n, %none, %w : i32\n"
       "%more = arith.cmpi ne, %f, %one : i32\n"
       "%kept = arith.addi %s, %f : i32\n"
       "scf.condition(%more) %f, %kept : i32, i32\n"
       "} do {\n"
       "^bb0(%m: i32, %k: i32):\n"
       "%other, %ok = gpu.shuffle xor %own, %one, %w : i32\n"
       "%bit = arith.andi %m, %one : i32\n"
       "%odd = arith.cmpi eq, %bit, %one : i32\n"
       "%half = arith.shrui %m, %one : i32\n"
       "%triple = arith.muli %m, %three : i32\n"
       "%up = arith.addi %triple, %one : i32\n"
       "%next = arith.select %odd, %up, %half : i32\n"
       "%t = arith.addi %k, %other : i32\n"
       "scf.yield %next, %t : i32, i32\n"
       "}\n"
       "%all = arith.addi %end, %sum : i32\n"
       "%v = arith.extsi %all : i32 to i64\n" +
           store("%v"),
       [](const std::vector<int64_t> &, size_t i) -> int64_t {
         int64_t sum = 1; // Collatz's numbers, and a lane's with each step
         for (size_t n = i / 32 + 1; n != 1; n = n % 2 ? 3 * n + 1 : n / 2)
           sum += int64_t(n + (i % 32 ^ 1));
         return sum + 1;
       },
       ""},
      {"what_memory_says_of_each_subgroup",
       "%c32 = arith.constant 32 : index\n"
       "%limit = arith.constant -8 : i64\n"
       "%two = arith.constant 2 : i32\n"
       "%w = arith.constant 32 : i32\n"
       "%group = arith.divui %i, %c32 : index\n"
       "%said = memref.load %x[%group] : memref<256xi64>\n"
       "%low = arith.cmpi slt, %said, %limit : i64\n"
       "%n = arith.index_cast %i : index to i64\n"
       "scf.if %low {\n"
       "%s, %ok = gpu.shuffle xor %n, %two, %w : i64\n"
       "memref.store %s, %y[%i] : memref<512xi64>\n"
       "} else {\n"
       "%t = gpu.subgroup_reduce add %n : (i64) -> i64\n"
       "memref.store %t, %y[%i] : memref<512xi64>\n"
       "}\n",
       [](const std::vector<int64_t> &x, size_t i) -> int64_t {
         return x[i / 32] < -8 ? int64_t(i ^ 2)
                               : 32 * int64_t(i / 32 * 32) + 31 * 16;
       },
       ""},
      // Lanes that do not come have no divisor.
      {"divisions_behind_a_condition_of_lanes",
       "%c32 = arith.constant 32 : index\n"
       "%limit = arith.constant -3 : i64\n"
       "%one = arith.constant 1 : i32\n"
       "%none = arith.constant 0 : i64\n"
       "%w = arith.constant 32 : i32\n"
       "%group = arith.divui %i, %c32 : index\n"
       "%said = memref.load %x[%group] : memref<256xi64>\n"
       "%low = arith.cmpi slt, %said, %limit : i64\n"
       "%d = arith.select %low, %said, %none : i64\n"
       "%n = arith.index_cast %i : index to i64\n"
       "%r = scf.if %low -> i64 {\n"
       "%o, %ok = gpu.shuffle xor %n, %one, %w : i64\n"
       "%p = arith.remsi %o, %d : i64\n"
       "%q = arith.divui %o, %d : i64\n"
       "%a = arith.index_cast %o : i64 to index\n"
       "%b = arith.index_cast %d : i64 to index\n"
       "%c = index.floordivs %a, %b\n"
       "%e = arith.index_cast %c : index to i64\n"
       "%f = arith.addi %p, %q : i64\n"
       "%g = arith.addi %f, %e : i64\n"
       "%t = gpu.subgroup_reduce add %g : (i64) -> i64\n"
       "scf.yield %t : i64\n"
       "} else {\n"
       "scf.yield %none : i64\n"
       "}\n" +
           store("%r"),
       [](const std::vector<int64_t> &x, size_t i) -> int64_t {
         const int64_t d = x[i / 32];
         if (d >= -3)
           return 0;
         int64_t sum = 0;
         for (int64_t o = int64_t(i / 32 * 32), end = o + 32; o < end; ++o)
           sum += o % d + int64_t(uint64_t(o) / uint64_t(d)) + o / d -
                  (o % d != 0);
         return sum;
       },
       ""},
      {"lanes_apart_with_as_many_trips",
       "%c32 = arith.constant 32 : index\n"
       "%c96 = arith.constant 96 : index\n"
       "%one = arith.constant 1 : i32\n"
       "%none = arith.constant 0 : i64\n"
       "%w = arith.constant 32 : i32\n"
       "%lane = gpu.lane_id\n"
       "%sum = scf.for %k = %lane to %c96 step %c32 iter_args(%s = %none) -> "
       "i64 {\n"
       "%v = memref.load %x[%k] : memref<256xi64>\n"
       "%o, %ok = gpu.shuffle xor %v, %one, %w : i64\n"
       "%d = arith.subi %s, %o : i64\n"
       "scf.yield %d : i64\n"
       "}\n" +
           store("%sum"),
       [](const std::vector<int64_t> &x, size_t i) -> int64_t {
         uint64_t sum = 0;
         for (size_t k = i % 32; k < 96; k += 32)
           sum -= uint64_t(x[k ^ 1]);
         return int64_t(sum);
       },
       ""},
      {"unsigned_trips_of_each_subgroup",
       "%low = arith.constant 100 : i8\n"
       "%high = arith.constant 250 : i8\n"
       "%more = arith.constant 50 : i8\n"
       "%step = arith.constant 50 : i8\n"
       "%one = arith.constant 1 : i32\n"
       "%none = arith.constant 0 : i32\n"
       "%w = arith.constant 32 : i32\n"
       "%warp = gpu.subgroup_id : index\n"
       "%n = arith.index_cast %warp : index to i8\n"
       "%apart = arith.muli %n, %more : i8\n"
       "%start = arith.addi %low, %apart : i8\n"
       "%lane = gpu.lane_id\n"
       "%own = arith.index_cast %lane : index to i32\n"
       "%sum = scf.for unsigned %k = %start to %high step %step "
       "iter_args(%s = %none) -> i32 : i8 {\n"
       "%o, %ok = gpu.shuffle xor %own, %one, %w : i32\n"
       "%wide = arith.extui %k : i8 to i32\n"
       "%p = arith.addi %wide, %o : i32\n"
       "%t = arith.addi %s, %p : i32\n"
       "scf.yield %t : i32\n"
       "}\n"
       "%v = arith.extui %sum : i32 to i64\n" +
           store("%v"),
       [](const std::vector<int64_t> &, size_t i) -> int64_t {
         int64_t sum = 0;
         for (int64_t k = i / 32 % 2 ? 150 : 100; k < 250; k += 50)
           sum += k + int64_t(i % 32 ^ 1);
         return sum;
       },
       ""},
      // Blocks of a function that ask for places and make threads meet.
      {"branches_around_threads_that_meet",
       "%n = arith.index_cast %i : index to i32\n"
       "%tile = memref.alloca() : memref<64xi32, "
       "#gpu.address_space<workgroup>>\n"
       "%r = func.call @turn(%tile, %n) : (memref<64xi32, "
       "#gpu.address_space<workgroup>>, i32) -> i32\n"
       "%v = arith.extsi %r : i32 to i64\n" +
           store("%v"),
       [](const std::vector<int64_t> &, size_t i) -> int64_t {
         return int64_t((i ^ 1) ^ 4) + 3;
       },
       "func.func private @turn(%tile: memref<64xi32, "
       "#gpu.address_space<workgroup>>, %n: i32) -> i32 {\n"
       "%none = arith.constant 0 : i32\n"
       "%one = arith.constant 1 : i32\n"
       "%three = arith.constant 3 : i32\n"
       "%four = arith.constant 4 : i32\n"
       "%w = arith.constant 32 : i32\n"
       "%c1 = arith.constant 1 : index\n"
       "%t = gpu.thread_id x\n"
       "%other = arith.xori %t, %c1 : index\n"
       "cf.br ^head(%none, %n : i32, i32)\n"
       "^nowhere:\n"
       "cf.br ^head(%one, %one : i32, i32)\n"
       "^head(%k: i32, %v: i32):\n"
       "%more = arith.cmpi slt, %k, %three : i32\n"
       "cf.cond_br %more, ^body, ^end\n"
       "^body:\n"
       "memref.store %v, %tile[%t] : memref<64xi32, "
       "#gpu.address_space<workgroup>>\n"
       "gpu.barrier\n"
       "%u = memref.load %tile[%other] : memref<64xi32, "
       "#gpu.address_space<workgroup>>\n"
       "gpu.barrier\n"
       "%next = arith.addi %u, %one : i32\n"
       "%count = arith.addi %k, %one : i32\n"
       "cf.br ^head(%count, %next : i32, i32)\n"
       "^end:\n"
       "%s, %ok = gpu.shuffle xor %v, %four, %w : i32\n"
       "return %s : i32\n"
       "}\n"},
      {"the_larger_by_branches",
       "%n = arith.index_cast %i : index to i64\n"
       "%r = gpu.all_reduce %n uniform {\n"
       "^bb0(%a: i64, %b: i64):\n"
       "%less = arith.cmpi slt, %a, %b : i64\n"
       "cf.cond_br %less, ^second, ^first\n"
       "^first:\n"
       "gpu.yield %a : i64\n"
       "^second:\n"
       "gpu.yield %b : i64\n"
       "} : (i64) -> (i64)\n" +
           store("%r"),
       [](const std::vector<int64_t> &, size_t i) { return int64_t(i | 63); },
       ""},
      // Which array is each thread's own choice, kept past a barrier.
      {"one_of_two_arrays",
       "%c1 = arith.constant 1 : index\n"
       "%c32 = arith.constant 32 : index\n"
       "%t = gpu.thread_id x\n"
       "%p = memref.alloca() : memref<64xi64, #gpu.address_space<workgroup>>\n"
       "%q = memref.alloca() : memref<64xi64, #gpu.address_space<workgroup>>\n"
       "%low = arith.cmpi ult, %t, %c32 : index\n"
       "%own = arith.select %low, %p, %q : memref<64xi64, "
       "#gpu.address_space<workgroup>>\n"
       "%n = arith.index_cast %i : index to i64\n"
       "memref.store %n, %own[%t] : memref<64xi64, "
       "#gpu.address_space<workgroup>>\n"
       "gpu.barrier\n"
       "%other = arith.xori %t, %c1 : index\n"
       "%v = memref.load %own[%other] : memref<64xi64, "
       "#gpu.address_space<workgroup>>\n" +
           store("%v"),
       [](const std::vector<int64_t> &, size_t i) { return int64_t(i ^ 1); },
       ""},
      {"an_array_of_a_loop",
       "%c0 = arith.constant 0 : index\n"
       "%c1 = arith.constant 1 : index\n"
       "%c3 = arith.constant 3 : index\n"
       "%t = gpu.thread_id x\n"
       "%n = arith.index_cast %i : index to i64\n"
       "%other = arith.xori %t, %c3 : index\n"
       "%all = scf.for %k = %c0 to %c3 step %c1 iter_args(%v = %n) -> i64 {\n"
       "%p = memref.alloca() : memref<64xi64, #gpu.address_space<workgroup>>\n"
       "memref.store %v, %p[%t] : memref<64xi64, "
       "#gpu.address_space<workgroup>>\n"
       "gpu.barrier\n"
       "%u = memref.load %p[%other] : memref<64xi64, "
       "#gpu.address_space<workgroup>>\n"
       "gpu.barrier\n"
       "scf.yield %u : i64\n"
       "}\n" +
           store("%all"),
       [](const std::vector<int64_t> &, size_t i) { return int64_t(i ^ 3); },
       ""},
      // LLVM's vectoriser moves stores that lie side by side past the loads
      // between them, in loops that are said to be parallel.
      {"loads_between_stores_side_by_side",
       "%c0 = arith.constant 0 : index\n"
       "%c1 = arith.constant 1 : index\n"
       "%c2 = arith.constant 2 : index\n"
       "%c3 = arith.constant 3 : index\n"
       "%c64 = arith.constant 64 : index\n"
       "%one = arith.constant 1 : i64\n"
       "%own = memref.alloca() : memref<4xi64>\n"
       "%n = arith.index_cast %i : index to i64\n"
       "memref.store %n, %own[%c0] : memref<4xi64>\n"
       "memref.store %n, %own[%c1] : memref<4xi64>\n"
       "memref.store %n, %own[%c2] : memref<4xi64>\n"
       "memref.store %n, %own[%c3] : memref<4xi64>\n"
       "%b = arith.divui %i, %c64 : index\n"
       "%k = arith.andi %b, %c3 : index\n"
       "%read = memref.load %own[%k] : memref<4xi64>\n"
       "%odd = arith.ori %n, %one : i64\n"
       "memref.store %odd, %own[%c2] : memref<4xi64>\n"
       "%again = memref.load %own[%k] : memref<4xi64>\n"
       "%twice = arith.addi %again, %again : i64\n"
       "%v = arith.subi %twice, %read : i64\n" +
           store("%v"),
       [](const std::vector<int64_t> &, size_t i) -> int64_t {
         return i / 64 % 4 == 2 ? 2 * int64_t(i | 1) - int64_t(i) : int64_t(i);
       },
       ""},
      {"an_index_cut_to_eight_bits",
       "%narrow = arith.index_cast %i : index to i8\n"
       "%wide = arith.index_cast %narrow : i8 to index\n"
       "%v = arith.index_cast %wide : index to i64\n" +
           store("%v"),
       [](const std::vector<int64_t> &, size_t i) {
         return int64_t(int8_t(i));
       },
       ""},
      {"stores_at_an_index_that_wraps",
       "%c255 = arith.constant 255 : index\n"
       "%c3 = arith.constant 3 : i8\n"
       "%in = arith.cmpi ule, %i, %c255 : index\n"
       "scf.if %in {\n"
       "%narrow = arith.index_cast %i : index to i8\n"
       "%sum = arith.addi %narrow, %c3 : i8\n"
       "%k = arith.index_castui %sum : i8 to index\n"
       "%v = memref.load %x[%i] : memref<256xi64>\n"
       "memref.store %v, %y[%k] : memref<512xi64>\n"
       "}\n",
       [](const std::vector<int64_t> &x, size_t i) {
         return i < 256 ? x[uint8_t(i - 3)] : 0;
       },
       ""},
      {"a_size_that_only_the_view_knows",
       zero +
           "%size = arith.constant 100000 : index\n"
           "%v = memref.reinterpret_cast %x to offset: [0], sizes: [%size], "
           "strides: [1] : memref<256xi64> to memref<?xi64, strided<[1]>>\n"
           "%d = memref.dim %v, %zero : memref<?xi64, strided<[1]>>\n"
           "%q = arith.muli %d, %d : index\n"
           "%w = arith.index_cast %q : index to i64\n" +
           store("%w"),
       [](const std::vector<int64_t> &, size_t) { return 10'000'000'000; }, ""},
      {"divisions_that_round_up_at_the_ends",
       "%c255 = arith.constant 255 : index\n"
       "%k = arith.andi %i, %c255 : index\n"
       "%n = memref.load %x[%k] : memref<256xi64>\n"
       "%a = arith.index_cast %n : i64 to index\n"
       "%c7 = arith.constant 7 : index\n"
       "%m7 = arith.constant -7 : index\n"
       "%up = index.ceildivs %a, %c7\n"
       "%down = index.floordivs %a, %m7\n"
       "%both = arith.xori %up, %down : index\n"
       "%w = arith.index_cast %both : index to i64\n" +
           store("%w"),
       [](const std::vector<int64_t> &x, size_t i) {
         const int64_t n = x[i % 256];
         const int64_t up = n / 7 + (n % 7 > 0), down = n / -7 - (n % -7 > 0);
         return up ^ down;
       },
       ""},
      {"switches_on_bits_and_on_negative_numbers",
       "%c255 = arith.constant 255 : index\n"
       "%k = arith.andi %i, %c255 : index\n"
       "%n = memref.load %x[%k] : memref<256xi64>\n"
       "%r = func.call @pick(%n) : (i64) -> i64\n" +
           store("%r"),
       [](const std::vector<int64_t> &x, size_t i) -> int64_t {
         const int64_t n = x[i % 256];
         return n == -9 ? 90 : n == least ? 91 : n & 1 ? 92 : 93;
       },
       "func.func private @pick(%n: i64) -> i64 {\n"
       "%a = arith.constant 90 : i64\n"
       "%b = arith.constant 91 : i64\n"
       "%c = arith.constant 92 : i64\n"
       "%d = arith.constant 93 : i64\n"
       "%bit = arith.trunci %n : i64 to i1\n"
       "\"cf.switch\"(%n, %a, %b)[^rest, ^end, ^end] <{case_operand_segments = "
       "array<i32: 1, 1>, case_values = dense<[-9, -9223372036854775808]> : "
       "vector<2xi64>, operandSegmentSizes = array<i32: 1, 0, 2>}> : (i64, "
       "i64, "
       "i64) -> ()\n"
       "^rest:\n"
       "\"cf.switch\"(%bit, %d, %c)[^end, ^end] <{case_operand_segments = "
       "array<i32: 1>, case_values = dense<true> : vector<1xi1>, "
       "operandSegmentSizes = array<i32: 1, 1, 1>}> : (i1, i64, i64) -> ()\n"
       "^end(%r: i64):\n"
       "return %r : i64\n"
       "}\n"},
      {"the_sign_of_negative_constants",
       "%c = arith.constant -1.5 : f64\n"
       "%n = arith.negf %c : f64\n"
       "%s = arith.constant -5 : i16\n"
       "%a = math.absi %s : i16\n"
       "%f = arith.fptosi %n : f64 to i64\n"
       "%w = arith.extsi %a : i16 to i64\n"
       "%r = arith.addi %f, %w : i64\n" +
           store("%r"),
       [](const std::vector<int64_t> &, size_t) { return 6; }, ""},
      // LLVM 22 loses signs of bfloats that it makes a fabs of.
      {"signs_of_bf16_through_a_reduction",
       "%c255 = arith.constant 255 : index\n"
       "%k = arith.andi %i, %c255 : index\n"
       "%n = memref.load %x[%k] : memref<256xi64>\n"
       "%t = arith.trunci %n : i64 to i8\n"
       "%h = arith.sitofp %t : i8 to bf16\n"
       "%r = gpu.all_reduce minnumf %h uniform {} : (bf16) -> (bf16)\n"
       "%f = arith.extf %r : bf16 to f32\n"
       "%w = arith.fptosi %f : f32 to i64\n" +
           store("%w"),
       [](const std::vector<int64_t> &, size_t) { return -16; }, ""}};
  return tests;
}

} // namespace mgpu::kernels

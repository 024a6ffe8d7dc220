// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What lanes of a subgroup do together, under control of their own.
#include "Meanings.h"

namespace mgpu::kernels {

std::vector<Meaning> laneMeanings() {
  return {
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
       "}\n"}};
}

} // namespace mgpu::kernels

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integers, memory and control.
#include "Meanings.h"

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

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Corners of what operations mean, where MLIR, LLVM or an emitter once had them
// wrong: the host target and emitted CUDA C++, in corners of its space, give
// what is computed here.
#include "CudaTwin.h"
#include "KernelRunner.h"

#include "kernels/emit/KernelBuild.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <sys/mman.h>

namespace mgpu::kernels {
namespace {

constexpr size_t numRead = 256, numWritten = 512;
constexpr Dim3 block{64, 1, 1}, grid{8, 1, 1};

struct Meaning {
  const char *name;
  /// With %x : memref<256xi64>, %y : memref<512xi64> and %i, the global index.
  std::string body;
  std::function<int64_t(const std::vector<int64_t> &x, size_t i)> expected;
  std::string functions;
};

std::string textOf(const Meaning &test) {
  return test.functions +
         "func.func @entry(%x: memref<256xi64>, %y: memref<512xi64>) {\n"
         "%i = gpu.global_id x\n" +
         test.body + "return\n}\n";
}

constexpr int64_t least = INT64_MIN;

/// Small numbers, then the ends of the range.
std::vector<int64_t> values() {
  std::vector<int64_t> x(numRead);
  for (size_t k = 0; k < numRead; ++k)
    x[k] = int64_t(k % 32) - 16;
  x[3] = least;
  x[4] = INT64_MAX;
  return x;
}

std::string store(const std::string &value) {
  return "memref.store " + value + ", %y[%i] : memref<512xi64>\n";
}

/// `zeros` of f32 combined by `operation`, as bits.
Meaning ofZeros(const char *name, const std::string &operation, float low,
                float high, float result) {
  auto literal = [](float value) {
    return std::signbit(value) ? "-0.0" : "0.0";
  };
  return {name,
          std::string("%a = arith.constant ") + literal(low) +
              " : f32\n"
              "%b = arith.constant " +
              literal(high) +
              " : f32\n"
              // From a value that no compiler knows.
              "%n = memref.load %x[%zero] : memref<256xi64>\n"
              "%f = arith.sitofp %n : i64 to f32\n"
              "%same = arith.cmpf oeq, %f, %f : f32\n"
              "%p = arith.select %same, %a, %f : f32\n"
              "%q = arith.select %same, %b, %f : f32\n"
              "%m = arith." +
              operation +
              " %p, %q : f32\n"
              "%bits = arith.bitcast %m : f32 to i32\n"
              "%w = arith.extui %bits : i32 to i64\n" +
              store("%w"),
          [result](const std::vector<int64_t> &, size_t) {
            return int64_t(std::bit_cast<uint32_t>(result));
          },
          ""};
}

/// A product that lies between two floats of 16 bits, and a sum that is a hair
/// off: rounded once. `ofVectors`: by vector.fma.
Meaning roundedOnce(const char *name, const std::string &type, bool ofVectors) {
  const bool isHalf = type == "f16";
  // Both exact, as is their product in a double; the hair is, too.
  auto factors = [isHalf](size_t i) -> std::pair<double, double> {
    return isHalf ? std::pair(double(i + 513), double(i % 60 + 1))
                  : std::pair(double(i % 128 + 128), 129.0);
  };
  const double hair = isHalf ? 0x1p-24 : 0x1p-20;
  std::string body = isHalf ? "%c513 = arith.constant 513 : index\n"
                              "%c60 = arith.constant 60 : index\n"
                              "%c1 = arith.constant 1 : index\n"
                              "%ai = arith.addi %i, %c513 : index\n"
                              "%rest = arith.remui %i, %c60 : index\n"
                              "%bi = arith.addi %rest, %c1 : index\n"
                              "%hair = arith.constant 0x0001 : f16\n"
                            : "%c128 = arith.constant 128 : index\n"
                              "%rest = arith.remui %i, %c128 : index\n"
                              "%ai = arith.addi %rest, %c128 : index\n"
                              "%bi = arith.constant 129 : index\n"
                              "%hair = arith.constant 0x3580 : bf16\n";
  body += "%two = arith.constant 2 : index\n"
          "%zero = arith.constant 0 : index\n"
          "%bit = arith.remui %i, %two : index\n"
          "%odd = arith.cmpi ne, %bit, %zero : index\n"
          "%a64 = arith.index_cast %ai : index to i64\n"
          "%b64 = arith.index_cast %bi : index to i64\n"
          "%a = arith.sitofp %a64 : i64 to T\n"
          "%b = arith.sitofp %b64 : i64 to T\n"
          "%less = arith.negf %hair : T\n"
          "%c = arith.select %odd, %less, %hair : T\n";
  body += ofVectors ? "%av = vector.broadcast %a : T to vector<2xT>\n"
                      "%bv = vector.broadcast %b : T to vector<2xT>\n"
                      "%cv = vector.broadcast %c : T to vector<2xT>\n"
                      "%rv = vector.fma %av, %bv, %cv : vector<2xT>\n"
                      "%r = vector.extract %rv[1] : T from vector<2xT>\n"
                    : "%r = math.fma %a, %b, %c : T\n";
  body += "%f = arith.extf %r : T to f32\n"
          "%w = arith.fptosi %f : f32 to i64\n";
  body += store("%w");
  for (size_t at; (at = body.find(" T")) != std::string::npos;)
    body.replace(at + 1, 1, type);
  for (size_t at; (at = body.find("xT>")) != std::string::npos;)
    body.replace(at + 1, 1, type);
  return {name, body,
          [=](const std::vector<int64_t> &, size_t i) {
            auto [a, b] = factors(i);
            const double exact = a * b + (i % 2 ? -hair : hair);
            int exponent;
            std::frexp(exact, &exponent);
            const double unit = std::ldexp(1, exponent - (isHalf ? 11 : 8));
            return int64_t(std::nearbyint(exact / unit) * unit);
          },
          ""};
}

std::vector<Meaning> meanings() {
  const std::string zero = "%zero = arith.constant 0 : index\n";
  std::vector<Meaning> tests{
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
  for (Meaning each : {ofZeros("minimumf", "minimumf", -0.f, 0.f, -0.f),
                       ofZeros("minimumf_turned", "minimumf", 0.f, -0.f, -0.f),
                       ofZeros("maximumf", "maximumf", -0.f, 0.f, 0.f),
                       ofZeros("maximumf_turned", "maximumf", 0.f, -0.f, 0.f),
                       ofZeros("minnumf", "minnumf", 0.f, -0.f, -0.f),
                       ofZeros("maxnumf", "maxnumf", 0.f, -0.f, 0.f)}) {
    each.body = zero + each.body;
    tests.push_back(std::move(each));
  }
  for (bool ofVectors : {false, true}) {
    tests.push_back(roundedOnce("fused_f16", "f16", ofVectors));
    tests.push_back(roundedOnce("fused_bf16", "bf16", ofVectors));
  }
  return tests;
}

TEST(Meaning, IsTheSameOnHostAndCard) {
  CudaTwins twins;
  const std::vector<Meaning> tests = meanings();
  std::vector<size_t> testOf;
  for (size_t t = 0; t < tests.size(); ++t) {
    const std::string text = textOf(tests[t]);
    auto kernel = emitCudaText(text, {tests[t].name, "", block, grid});
    ASSERT_TRUE(kernel) << tests[t].name << ": " << kernel.error().message;
    auto space =
        kernelSpaceOf(specOf(text, block), grid, planner::KernelTarget::Cuda);
    ASSERT_TRUE(space) << space.error().message;
    std::vector<planner::KernelConfig> configs = cornersOf(*space, 6);
    configs.push_back(space->defaults);
    for (const planner::KernelConfig &config : configs) {
      twins.add({"e" + std::to_string(testOf.size()), *kernel, *space, config});
      testOf.push_back(t);
    }
  }
  auto compiled = twins.compile();
  ASSERT_TRUE(compiled) << compiled.error().message;
  const std::vector<int64_t> initial = values();
  std::vector<std::vector<int64_t>> expected;
  for (const Meaning &test : tests) {
    std::vector<int64_t> &result = expected.emplace_back(numWritten);
    for (size_t i = 0; i < numWritten; ++i)
      result[i] = test.expected(initial, i);
    auto space = kernelSpaceOf(specOf(textOf(test), block), grid,
                               planner::KernelTarget::Host);
    ASSERT_TRUE(space) << space.error().message;
    const std::vector<planner::KernelConfig> legal = space->legal();
    for (const planner::KernelConfig &config :
         {space->defaults, legal.front(), legal[legal.size() / 2],
          legal.back()}) {
      auto host = load(textOf(test), block, "native", config);
      ASSERT_TRUE(host) << test.name;
      std::vector<int64_t> x = initial, y(numWritten);
      host->run(grid, {arg(x), arg(y)});
      EXPECT_EQ(y, result) << test.name << " on the host: " << toText(config);
      EXPECT_EQ(x, initial);
    }
  }
  for (size_t k = 0; k < testOf.size(); ++k) {
    std::vector<int64_t> x = initial, y(numWritten);
    twins.run(twins.configs[k].entry, grid, {arg(x), arg(y)});
    EXPECT_EQ(y, expected[testOf[k]])
        << tests[testOf[k]].name << ": " << toText(twins.configs[k].config);
  }
}

// Rows of 2 GiB, of which few pages are touched.
TEST(Meaning, OffsetsBeyond32Bits) {
  constexpr size_t row = 2147483647, rows = 3, late = row - 100;
  const std::string text =
      "func.func @entry(%x: memref<3x2147483647xi8>) {\n"
      "%c0 = arith.constant 0 : index\n"
      "%late = arith.constant 2147483547 : index\n"
      "%t = gpu.thread_id x\n"
      "%b = gpu.block_id x\n"
      "%i = gpu.global_id x\n"
      "%n = arith.index_cast %i : index to i8\n"
      "memref.store %n, %x[%b, %t] : memref<3x2147483647xi8>\n"
      "%v = memref.subview %x[%b, 0] [1, 2147483647] [1, 1] : "
      "memref<3x2147483647xi8> to memref<2147483647xi8, strided<[1], offset: "
      "?>>\n"
      "%j = arith.addi %t, %late : index\n"
      "memref.store %n, %v[%j] : memref<2147483647xi8, strided<[1], offset: "
      "?>>\n"
      "return\n}\n";
  const Dim3 all{rows, 1, 1};
  auto kernel = emitCudaText(text, {"far", "", block, all});
  ASSERT_TRUE(kernel) << kernel.error().message;
  auto space =
      kernelSpaceOf(specOf(text, block), all, planner::KernelTarget::Cuda);
  ASSERT_TRUE(space) << space.error().message;
  CudaTwins twins;
  for (const planner::KernelConfig &config : cornersOf(*space, 6))
    twins.add(
        {"e" + std::to_string(twins.configs.size()), *kernel, *space, config});
  auto compiled = twins.compile();
  ASSERT_TRUE(compiled) << compiled.error().message;
  auto host = load(text, block);
  ASSERT_TRUE(host);
  auto check = [&](const std::function<void(uint64_t)> &run,
                   const std::string &what) {
    void *memory = mmap(nullptr, rows * row, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      GTEST_SKIP() << "no 6 GiB of addresses";
    const auto *bytes = static_cast<const uint8_t *>(memory);
    run(reinterpret_cast<uint64_t>(memory));
    for (size_t k = 0; k < rows; ++k)
      for (size_t t = 0; t < block.x; ++t)
        for (size_t at : {k * row + t, k * row + late + t})
          ASSERT_EQ(bytes[at], uint8_t(k * block.x + t)) << what << " " << at;
    munmap(memory, rows * row);
  };
  check([&](uint64_t x) { host->run(all, {x}); }, "host");
  for (const TwinConfig &each : twins.configs)
    check([&](uint64_t x) { twins.run(each.entry, all, {x}); },
          toText(each.config));
}

} // namespace
} // namespace mgpu::kernels

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Emitted CUDA C++ does what the host target does, bit for bit: it is compiled
// for the processor and both run on the same data; and NVRTC takes it for
// three architectures without a warning.
#include "CudaTwin.h"
#include "KernelRunner.h"

#include "kernels/compile/NvrtcCompiler.h"
#include "kernels/compile/PtxasLog.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>

namespace mgpu::kernels {
namespace {

/// A kernel and a launch of it.
struct Case {
  std::string name, text;
  Dim3 block, grid;
  /// Bytes and element type of each memref argument: 'f', 'd', 'i', 'l', 's',
  /// 'c' or 'h' (an f16 or bf16), then scalars.
  struct Buffer {
    char type;
    size_t count;
  };
  std::vector<Buffer> buffers;
  std::vector<uint64_t> scalars;
  bool reshapable = true;
};

size_t bytesOf(char type) {
  return type == 'd' || type == 'l'   ? 8
         : type == 'f' || type == 'i' ? 4
         : type == 'c'                ? 1
                                      : 2;
}

/// Small whole and half numbers, which sums and products of keep exactly.
std::vector<std::byte> fill(Case::Buffer buffer, std::mt19937 &engine) {
  std::vector<std::byte> bytes(buffer.count * bytesOf(buffer.type));
  for (size_t k = 0; k < buffer.count; ++k) {
    int value = int(engine() % 15) - 7;
    std::byte *at = bytes.data() + k * bytesOf(buffer.type);
    auto put = [&](auto typed) { std::memcpy(at, &typed, sizeof typed); };
    if (buffer.type == 'f')
      put(float(value) / 2);
    else if (buffer.type == 'd')
      put(double(value) / 2);
    else if (buffer.type == 'h') // bf16; as an f16 some other finite number
      put(uint16_t(std::bit_cast<uint32_t>(float(value) / 2) >> 16));
    else if (buffer.type == 'i')
      put(int32_t(k % 9 == 0 ? engine() : value));
    else if (buffer.type == 'l')
      put(int64_t(k % 9 == 0 ? uint64_t(engine()) * engine()
                             : uint64_t(value)));
    else if (buffer.type == 's')
      put(int16_t(k % 9 == 0 ? engine() : uint32_t(value)));
    else
      put(int8_t(value));
  }
  return bytes;
}

/// One store per operation of `type` on a(i), b(i): row r of %o is operation r.
Case corpus(const std::string &name, const std::string &type, char code,
            const std::vector<std::string> &operations,
            const std::string &before = "") {
  std::string rows = std::to_string(operations.size());
  std::string memref = "memref<96x" + type + ">",
              out = "memref<" + rows + "x96x" + type + ">";
  std::string body = "%i = gpu.global_id x\n"
                     "%a = memref.load %x[%i] : " +
                     memref +
                     "\n"
                     "%b = memref.load %y[%i] : " +
                     memref + "\n" + before;
  for (size_t r = 0; r < operations.size(); ++r) {
    std::string n = std::to_string(r);
    std::string operation = operations[r];
    for (size_t at; (at = operation.find("$r")) != std::string::npos;)
      operation.replace(at, 2, "%r" + n);
    for (size_t at; (at = operation.find("$t")) != std::string::npos;)
      operation.replace(at, 2, "%t" + n);
    body += operation + "\n%row" + n + " = arith.constant " + n +
            " : index\nmemref.store %r" + n + ", %o[%row" + n +
            ", %i] : " + out + "\n";
  }
  return {name,
          module("%x: " + memref + ", %y: " + memref + ", %o: " + out, body),
          {32},
          {3},
          {{code, 96}, {code, 96}, {code, 96 * operations.size()}},
          {}};
}

Case integers(const std::string &type, char code) {
  std::vector<std::string> operations;
  for (const char *op : {"addi", "subi", "muli", "andi", "ori", "xori", "maxsi",
                         "minsi", "maxui", "minui"})
    operations.push_back(std::string("$r = arith.") + op + " %a, %b : " + type);
  for (const char *op : {"divsi", "divui", "remsi", "remui", "floordivsi",
                         "ceildivsi", "ceildivui"})
    operations.push_back(std::string("$r = arith.") + op + " %a, %d : " + type);
  for (const char *op : {"shli", "shrsi", "shrui"})
    operations.push_back(std::string("$r = arith.") + op + " %a, %s : " + type);
  for (const char *p :
       {"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"})
    operations.push_back(std::string("$t = arith.cmpi ") + p + ", %a, %b : " +
                         type + "\n$r = arith.select $t, %a, %b : " + type);
  operations.push_back("$t = arith.trunci %a : " + type +
                       " to i1\n$r = arith.extsi $t : i1 to " + type);
  operations.push_back("$t = arith.cmpi slt, %a, %b : " + type +
                       "\n$r = arith.extui $t : i1 to " + type);
  operations.push_back("$t = arith.index_cast %a : " + type +
                       " to index\n$r = arith.index_cast $t : index to " +
                       type);
  operations.push_back("$t = arith.index_castui %a : " + type +
                       " to index\n$r = arith.index_castui $t : index to " +
                       type);
  for (const char *op : {"absi", "ctlz", "cttz", "ctpop"})
    operations.push_back(std::string("$r = math.") + op + " %a : " + type);
  return corpus(type + "_ops", type, code, operations,
                // A divisor that is neither 0 nor -1, a shift below the width.
                "%c3 = arith.constant 3 : " + type +
                    "\n%c5 = arith.constant 5 : " + type +
                    "\n%m = arith.andi %b, %c3 : " + type +
                    "\n%s = arith.addi %m, %c3 : " + type +
                    "\n%n = arith.constant -7 : " + type +
                    "\n%neg = arith.cmpi slt, %b, %c3 : " + type +
                    "\n%d = arith.select %neg, %n, %s : " + type + "\n");
}

Case floats(const std::string &type, char code) {
  std::vector<std::string> operations;
  for (const char *op :
       {"addf", "subf", "mulf", "divf", "maximumf", "minimumf"})
    operations.push_back(std::string("$r = arith.") + op + " %a, %b : " + type);
  operations.push_back("$r = arith.negf %a : " + type);
  for (const char *p : {"oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq",
                        "ugt", "uge", "ult", "ule", "une", "uno"})
    operations.push_back(std::string("$t = arith.cmpf ") + p + ", %a, %b : " +
                         type + "\n$r = arith.select $t, %a, %b : " + type);
  operations.push_back("$t = arith.fptosi %a : " + type +
                       " to i32\n$r = arith.sitofp $t : i32 to " + type);
  if (type == "f32" || type == "f64") {
    for (const char *op : {"sqrt", "absf", "ceil", "floor", "trunc",
                           "roundeven", "exp", "sin", "tanh"})
      operations.push_back(std::string("$r = math.") + op + " %a : " + type);
    operations.push_back("$r = math.fma %a, %b, %a : " + type);
    operations.push_back("$r = math.copysign %a, %b : " + type);
    operations.push_back("$r = arith.remf %a, %b : " + type);
  }
  return corpus(type + "_ops", type, code, operations);
}

std::vector<Case> allCases() {
  std::vector<Case> cases{integers("i8", 'c'),  integers("i16", 's'),
                          integers("i32", 'i'), integers("i64", 'l'),
                          floats("f32", 'f'),   floats("f64", 'd'),
                          floats("bf16", 'h')};
  cases.push_back(
      {"saxpy",
       module("%x: memref<1000xf32>, %y: memref<1000xf32>, %a: f32, "
              "%n: index",
              R"(
    %i = gpu.global_id x
    %in = arith.cmpi slt, %i, %n : index
    scf.if %in {
      %xv = memref.load %x[%i] : memref<1000xf32>
      %yv = memref.load %y[%i] : memref<1000xf32>
      %p = arith.mulf %a, %xv : f32
      %s = arith.addf %p, %yv : f32
      memref.store %s, %y[%i] : memref<1000xf32>
    })"),
       {128},
       {8},
       {{'f', 1000}, {'f', 1000}},
       {arg(1.5f), 991}});
  cases.push_back({"stencil",
                   module("%u: memref<18x64xf32>, %v: memref<18x64xf32>", R"(
    %b = gpu.block_id x
    %j = gpu.thread_id x
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %c63 = arith.constant 63 : index
    %i = arith.addi %b, %c1 : index
    %l = arith.cmpi sgt, %j, %c0 : index
    %r = arith.cmpi slt, %j, %c63 : index
    %in = arith.andi %l, %r : i1
    scf.if %in {
      %up = arith.subi %i, %c1 : index
      %right = arith.addi %j, %c1 : index
      %n = memref.load %u[%up, %j] : memref<18x64xf32>
      %e = memref.load %u[%i, %right] : memref<18x64xf32>
      %s = arith.addf %n, %e : f32
      memref.store %s, %v[%i, %j] : memref<18x64xf32>
    } else {
      %c = memref.load %u[%i, %j] : memref<18x64xf32>
      memref.store %c, %v[%i, %j] : memref<18x64xf32>
    })"),
                   {64},
                   {16},
                   {{'f', 18 * 64}, {'f', 18 * 64}},
                   {}});
  cases.push_back({"matmul",
                   module("%a: memref<48x33xf32>, %b: memref<33x40xf32>, "
                          "%c: memref<48x40xf32, strided<[40, 1], offset: 3>>",
                          R"(
    %col = gpu.global_id x
    %row = gpu.global_id y
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %k = arith.constant 33 : index
    %zero = arith.constant 0.0 : f32
    %sum = scf.for %i = %c0 to %k step %c1 iter_args(%acc = %zero) -> f32 {
      %x = memref.load %a[%row, %i] : memref<48x33xf32>
      %y = memref.load %b[%i, %col] : memref<33x40xf32>
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %acc, %p : f32
      scf.yield %s : f32
    }
    memref.store %sum, %c[%row, %col]
      : memref<48x40xf32, strided<[40, 1], offset: 3>>)"),
                   {8, 16},
                   {5, 3},
                   {{'f', 48 * 33}, {'f', 33 * 40}, {'f', 48 * 40 + 3}},
                   {}});
  cases.push_back({"views",
                   module("%x: memref<64x32xf32>, %o: memref<64x8xf32>", R"(
    %i = gpu.global_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %row = memref.subview %x[%i, 4] [1, 8] [1, 3]
        : memref<64x32xf32> to memref<8xf32, strided<[3], offset: ?>>
    %flat = memref.collapse_shape %o [[0, 1]]
        : memref<64x8xf32> into memref<512xf32>
    %cast = memref.reinterpret_cast %x to offset: [%i], sizes: [2, 3],
        strides: [%c8, 2] : memref<64x32xf32> to memref<2x3xf32, strided<[?, 2], offset: ?>>
    %extra = memref.load %cast[%c1, %c1] : memref<2x3xf32, strided<[?, 2], offset: ?>>
    scf.for %k = %c0 to %c8 step %c1 {
      %v = memref.load %row[%k] : memref<8xf32, strided<[3], offset: ?>>
      %s = arith.addf %v, %extra : f32
      %m = arith.muli %i, %c8 : index
      %at = arith.addi %m, %k : index
      memref.store %s, %flat[%at] : memref<512xf32>
    })"),
                   {16},
                   {4},
                   {{'f', 64 * 32}, {'f', 512}},
                   {}});
  cases.push_back(
      {"control",
       module("%x: memref<64xi64>, %o: memref<64xi64>, %n: index", R"(
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %z = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %v = memref.load %x[%t] : memref<64xi64>
    %a0 = arith.index_cast %t : index to i64
    %p, %q = scf.for %k = %c0 to %n step %c1 iter_args(%a = %a0, %b = %one)
        -> (i64, i64) {
      %c = arith.addi %a, %b : i64
      scf.yield %b, %c : i64, i64
    }
    %w, %steps = scf.while (%m = %a0, %s = %z) : (i64, i64) -> (i64, i64) {
      %sq = arith.muli %m, %m : i64
      %more = arith.cmpi sgt, %sq, %a0 : i64
      scf.condition(%more) %m, %s : i64, i64
    } do {
    ^bb0(%m: i64, %s: i64):
      %d = arith.subi %m, %one : i64
      %e = arith.addi %s, %one : i64
      scf.yield %d, %e : i64, i64
    }
    %three = arith.constant 3 : index
    %r = arith.remui %t, %three : index
    %sw = scf.index_switch %r -> i64
    case 0 { scf.yield %p : i64 }
    case 2 {
      %y = arith.xori %q, %v : i64
      scf.yield %y : i64
    }
    default { scf.yield %w : i64 }
    %f = func.call @steps(%v) : (i64) -> i64
    %g, %h = func.call @pair(%sw, %f) : (i64, i64) -> (i64, i64)
    %i = arith.addi %g, %h : i64
    %j = arith.addi %i, %steps : i64
    memref.store %j, %o[%t] : memref<64xi64>)",
              R"(
  func.func @pair(%x: i64, %y: i64) -> (i64, i64) {
    %t = gpu.thread_id x
    %b = gpu.block_dim x
    %s = arith.muli %t, %b : index
    %c = arith.index_cast %s : index to i64
    %z = arith.addi %x, %c : i64
    return %y, %z : i64, i64
  }
  func.func @steps(%x: i64) -> i64 {
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    cf.br ^head(%x, %c0 : i64, i64)
  ^head(%v: i64, %n: i64):
    %more = arith.cmpi sgt, %v, %c0 : i64
    cf.cond_br %more, ^body, ^exit
  ^body:
    %w = arith.shrsi %v, %c1 : i64
    %m = arith.addi %n, %c1 : i64
    cf.br ^head(%w, %m : i64, i64)
  ^exit:
    return %n : i64
  })"),
       {64},
       {1},
       {{'l', 64}, {'l', 64}},
       {20}});
  cases.push_back({"reverse",
                   module("%x: memref<512xf32>, %o: memref<512xf32>", R"(
    %tile = memref.alloca() : memref<128xf32, #gpu.address_space<workgroup>>
    %i = gpu.global_id x
    %t = gpu.thread_id x
    %c127 = arith.constant 127 : index
    %v = memref.load %x[%i] : memref<512xf32>
    memref.store %v, %tile[%t] : memref<128xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %r = arith.subi %c127, %t : index
    %w = memref.load %tile[%r] : memref<128xf32, #gpu.address_space<workgroup>>
    %d = arith.subf %w, %v : f32
    memref.store %d, %o[%i] : memref<512xf32>)"),
                   {128},
                   {4},
                   {{'f', 512}, {'f', 512}},
                   {},
                   false});
  cases.push_back({"dynamic",
                   R"(
  #twice = affine_map<(d0) -> (d0 * 2)>
  func.func @entry(%x: memref<128xf32>, %o: memref<64xf32>)
      attributes {mgpu.dynamic_shared_bytes = 512 : i64} {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c63 = arith.constant 63 : index
    %raw = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %tile = memref.view %raw[%c0][] : memref<?xi8, #gpu.address_space<workgroup>>
        to memref<128xf32, #gpu.address_space<workgroup>>
    %j = affine.apply #twice(%t)
    %v = vector.load %x[%j] : memref<128xf32>, vector<2xf32>
    vector.store %v, %tile[%j]
        : memref<128xf32, #gpu.address_space<workgroup>>, vector<2xf32>
    gpu.barrier
    %r = arith.subi %c63, %t : index
    %k = affine.apply #twice(%r)
    %w = vector.load %tile[%k]
        : memref<128xf32, #gpu.address_space<workgroup>>, vector<2xf32>
    %d = arith.subf %w, %v : vector<2xf32>
    %s = vector.reduction <add>, %d : vector<2xf32> into f32
    memref.store %s, %o[%t] : memref<64xf32>
    return
  })",
                   {64},
                   {1},
                   {{'f', 128}, {'f', 64}},
                   {},
                   false});
  cases.push_back({"together",
                   module("%x: memref<100xi32>, %y: memref<100xf32>, "
                          "%o: memref<8x100xi32>, %p: memref<2x100xf32>",
                          R"(
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<100xi32>
    %f = memref.load %y[%t] : memref<100xf32>
    %sum = gpu.all_reduce add %v uniform {} : (i32) -> (i32)
    %low = gpu.all_reduce minui %v uniform {} : (i32) -> (i32)
    %own = gpu.all_reduce %v uniform {
    ^bb0(%l: i32, %r: i32):
      %h = arith.maxsi %l, %r : i32
      gpu.yield %h : i32
    } : (i32) -> (i32)
    %fs = gpu.all_reduce add %f uniform {} : (f32) -> (f32)
    %fm = gpu.all_reduce maximumf %f uniform {} : (f32) -> (f32)
    %a = gpu.subgroup_reduce add %v : (i32) -> i32
    %b = gpu.subgroup_reduce maxsi %v cluster(size = 8) : (i32) -> i32
    %c = gpu.subgroup_reduce xor %v cluster(size = 4, stride = 2) : (i32) -> i32
    %off = arith.constant 5 : i32
    %width = arith.constant 32 : i32
    %up, %upOk = gpu.shuffle up %v, %off, %width : i32
    %ok = arith.extui %upOk : i1 to i32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c6 = arith.constant 6 : index
    %c7 = arith.constant 7 : index
    memref.store %sum, %o[%c0, %t] : memref<8x100xi32>
    memref.store %low, %o[%c1, %t] : memref<8x100xi32>
    memref.store %own, %o[%c2, %t] : memref<8x100xi32>
    memref.store %a, %o[%c3, %t] : memref<8x100xi32>
    memref.store %b, %o[%c4, %t] : memref<8x100xi32>
    memref.store %c, %o[%c5, %t] : memref<8x100xi32>
    memref.store %up, %o[%c6, %t] : memref<8x100xi32>
    memref.store %ok, %o[%c7, %t] : memref<8x100xi32>
    memref.store %fs, %p[%c0, %t] : memref<2x100xf32>
    memref.store %fm, %p[%c1, %t] : memref<2x100xf32>)"),
                   {100},
                   {1},
                   {{'i', 100}, {'f', 100}, {'i', 800}, {'f', 200}},
                   {},
                   false});
  cases.push_back({"atomics",
                   module("%o: memref<8xi32>, %f: memref<3xf32>", R"(
    %i = gpu.global_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %one = arith.constant 1 : i32
    %half = arith.constant 0.5 : f32
    %slot = arith.remui %i, %c4 : index
    %iv = arith.index_cast %i : index to i32
    %fv = arith.sitofp %iv : i32 to f32
    %u0 = memref.atomic_rmw addi %one, %o[%slot] : (i32, memref<8xi32>) -> i32
    %u1 = memref.atomic_rmw maxs %iv, %o[%c4] : (i32, memref<8xi32>) -> i32
    %u2 = memref.atomic_rmw minu %iv, %o[%c5] : (i32, memref<8xi32>) -> i32
    %u3 = memref.atomic_rmw addf %half, %f[%c0] : (f32, memref<3xf32>) -> f32
    %u4 = memref.atomic_rmw maximumf %fv, %f[%c1] : (f32, memref<3xf32>) -> f32)"),
                   {50},
                   {3},
                   {{'i', 8}, {'f', 3}},
                   {}});
  return cases;
}

/// Everything is emitted and compiled once, for all tests.
class CudaKernels : public testing::Test {
protected:
  static void SetUpTestSuite() {
    cases = new std::vector<Case>(allCases());
    twins = new CudaTwins;
    failures = new std::string;
    for (const Case &each : *cases) {
      auto kernel =
          emitCudaText(each.text, {each.name, "", each.block, each.grid});
      if (!kernel) {
        *failures += each.name + ": " + kernel.error().message + "\n";
        continue;
      }
      if (kernel->reshapable != each.reshapable)
        *failures += each.name + " reshapable? " + kernel->reason + "\n";
      twins->add({each.name + "_same", *kernel, each.block, 1});
      twins->add({each.name + "_items", *kernel, each.block, 3});
      if (kernel->reshapable) {
        twins->add({each.name + "_wide", *kernel, {96, 2, 1}, 2});
        twins->add({each.name + "_thin", *kernel, {1, 3, 1}, 5});
      }
    }
  }
  static void TearDownTestSuite() {
    delete cases;
    delete twins;
    delete failures;
  }
  static std::vector<Case> *cases;
  static CudaTwins *twins;
  static std::string *failures;
};
std::vector<Case> *CudaKernels::cases;
CudaTwins *CudaKernels::twins;
std::string *CudaKernels::failures;

TEST_F(CudaKernels, GiveTheBitsOfTheHostTwin) {
  ASSERT_EQ(*failures, "");
  auto compiled = twins->compile();
  ASSERT_TRUE(compiled) << compiled.error().message;
  for (const Case &each : *cases) {
    auto host = LoadedKernel::fromText(each.text, each.block);
    ASSERT_TRUE(host) << each.name << ": " << host.error().message;
    std::mt19937 engine(7);
    std::vector<std::vector<std::byte>> initial;
    for (Case::Buffer buffer : each.buffers)
      initial.push_back(fill(buffer, engine));
    auto arguments = [&](std::vector<std::vector<std::byte>> &buffers) {
      std::vector<uint64_t> words;
      for (auto &buffer : buffers)
        words.push_back(reinterpret_cast<uint64_t>(buffer.data()));
      words.insert(words.end(), each.scalars.begin(), each.scalars.end());
      return words;
    };
    auto expected = initial;
    (*host)->run(each.grid, arguments(expected));
    EXPECT_NE(expected, initial) << each.name << " does nothing";
    for (const TwinConfig &config : twins->configs) {
      if (config.kernel.name != each.name)
        continue;
      auto got = initial;
      twins->run(config.entry, each.grid, arguments(got));
      for (size_t k = 0; k < got.size(); ++k) {
        size_t width = bytesOf(each.buffers[k].type), wrong = 0, first = 0;
        for (size_t e = each.buffers[k].count; e-- > 0;)
          if (std::memcmp(&got[k][e * width], &expected[k][e * width], width)) {
            ++wrong;
            first = e;
          }
        EXPECT_EQ(wrong, 0u)
            << config.entry << " buffer " << k << ", first element " << first;
      }
    }
  }
}

TEST_F(CudaKernels, CompileForThreeArchitecturesWithoutAWarning) {
  ASSERT_EQ(*failures, "");
  auto compiler = NvrtcCompiler::open();
  if (!compiler) {
    if (std::getenv("MGPU_REQUIRE_NVRTC"))
      FAIL() << compiler.error().message;
    GTEST_SKIP() << compiler.error().message;
  }
  for (const char *arch : {"sm_80", "sm_90", "sm_100"})
    for (std::string option : {"--fmad=false", "-DMGPU_FAST_MATH=1"}) {
      if (option != "--fmad=false" && arch != std::string("sm_90"))
        continue;
      auto kernel =
          compiler->compile({twins->source(), "corpus.cu", {option}, arch});
      ASSERT_TRUE(kernel) << kernel.error().message;
      EXPECT_FALSE(hasWarning(kernel->log)) << kernel->log;
      for (const TwinConfig &config : twins->configs)
        EXPECT_TRUE(kernel->find(config.entry)) << config.entry;
    }
}

TEST(CudaEmitter, WhatCannotBeEmittedIsNamed) {
  struct {
    const char *arguments, *body, *message;
  } refused[] = {
      {"%x: memref<4xf32>, %y: memref<4xf32>",
       "memref.copy %x, %y : memref<4xf32> to memref<4xf32>", "memref.copy"},
      {"%x: memref<4xi7>, %i: index",
       "%v = memref.load %x[%i] : memref<4xi7>\n"
       "memref.store %v, %x[%i] : memref<4xi7>",
       "i7"},
      {"%x: memref<4xf128>", "", "f128"},
      {"%x: memref<4xi8>, %v: i8, %i: index",
       "%r = memref.atomic_rmw addi %v, %x[%i] : (i8, memref<4xi8>) -> i8",
       "narrower than 16 bits"},
      {"%v: i32", "gpu.printf \"%s\", %v : i32", "conversion '%s'"},
  };
  for (auto [arguments, body, message] : refused) {
    auto kernel =
        emitCudaText(module(arguments, body), {"k", "", {32}, {1, 1, 1}});
    ASSERT_FALSE(kernel) << body;
    EXPECT_EQ(kernel.error().kind, ErrorKind::Unsupported);
    EXPECT_NE(kernel.error().message.find(message), std::string::npos)
        << kernel.error().message;
  }
  EXPECT_FALSE(emitCudaText(module("", ""), {"k", "", {2048}, {1, 1, 1}}));
}

TEST(CudaEmitter, PrintfReadsEachArgumentAtItsOwnWidth) {
  auto kernel = emitCudaText(
      module("%v: i64, %f: f32",
             "%t = gpu.thread_id x\n"
             "gpu.printf \"%d %ld %hhd %f\", %v, %t, %v, %f : i64, index, i64, "
             "f32"),
      {"k", "", {32}, {1, 1, 1}});
  ASSERT_TRUE(kernel) << kernel.error().message;
  EXPECT_NE(kernel->source.find("printf(\"%lld %lld %lld %f\", (long long)"),
            std::string::npos)
      << kernel->source;
}

} // namespace
} // namespace mgpu::kernels

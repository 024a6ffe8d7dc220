// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels whose subgroups hold matrices, and hand values to one lane.
#include "KernelCases.h"
#include "KernelRunner.h"

#include <fmt/format.h>

namespace mgpu::kernels {

const std::vector<MatrixProductCase> &matrixProducts() {
  // Every shape with a type, and every type.
  static const std::vector<MatrixProductCase> products{
      {"half", 16, 16, 16, "f16", "f16", "f32", false},
      {"half_turned", 8, 32, 16, "f16", "f16", "f32", true},
      {"half_tall", 32, 8, 16, "f16", "f16", "f16", false},
      {"half_half", 16, 16, 16, "f16", "f16", "f16", true},
      {"half_half_turned", 8, 32, 16, "f16", "f16", "f16", false},
      {"half_narrow", 16, 8, 16, "f16", "f16", "f32", true},
      {"half_large", 32, 16, 16, "f16", "f16", "f32", false},
      {"tf32", 16, 16, 8, "f32", "f32", "f32", false},
      {"tf32_turned", 8, 32, 8, "f32", "f32", "f32", true},
      {"bytes_signed", 16, 16, 16, "i8", "si8", "i32", true},
      {"bytes_unsigned", 32, 8, 16, "i8", "ui8", "i32", false},
      {"bytes_turned", 8, 32, 16, "i8", "si8", "i32", false},
      {"double", 8, 8, 4, "f64", "f64", "f64", true},
      {"double_plain", 8, 8, 4, "f64", "f64", "f64", false}};
  return products;
}

KernelCase MatrixProductCase::asCase() const {
  auto code = [](const std::string &type) {
    return type == "f16"   ? 'h'
           : type == "f32" ? 'f'
           : type == "f64" ? 'd'
           : type == "i32" ? 'i'
                           : 'c';
  };
  std::string body = R"(
    %s = gpu.subgroup_id : index
    %b = gpu.block_id x
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %step = arith.constant {K} : index
    %end = arith.constant {KK} : index
    %first = arith.muli %b, %c2 : index
    %tile = arith.addi %first, %s : index
    %old = gpu.subgroup_mma_load_matrix %c[%tile, %c0, %c0] {leadDimension = {N} : index} : {MEMC} -> {C}
    %sum = scf.for %at = %c0 to %end step %step iter_args(%held = %old) -> ({C}) {
      %x = gpu.subgroup_mma_load_matrix %a[{PLACEA}] {{LEADA}} : {MEMA} -> {A}
      %y = gpu.subgroup_mma_load_matrix %w[{PLACEB}] {{LEADB}} : {MEMB} -> {B}
      %r = gpu.subgroup_mma_compute %x, %y, %held : {A}, {B} -> {C}
      scf.yield %r : {C}
    }
    gpu.subgroup_mma_store_matrix %sum, %c[%tile, %c0, %c0] {leadDimension = {N} : index} : {C}, {MEMC})";
  auto set = [&](const std::string &name, const std::string &value) {
    for (size_t at; (at = body.find("{" + name + "}")) != std::string::npos;)
      body.replace(at, name.size() + 2, value);
  };
  std::string memA = transposed
                         ? fmt::format("memref<4x{}x{}x{}>", 2 * k, m, stored)
                         : fmt::format("memref<4x{}x{}x{}>", m, 2 * k, stored),
              memB = transposed
                         ? fmt::format("memref<4x{}x{}x{}>", n, 2 * k, stored)
                         : fmt::format("memref<4x{}x{}x{}>", 2 * k, n, stored),
              memC = fmt::format("memref<4x{}x{}x{}>", m, n, sum);
  set("PLACEA", transposed ? "%tile, %at, %c0" : "%tile, %c0, %at");
  set("PLACEB", transposed ? "%tile, %c0, %at" : "%tile, %at, %c0");
  set("LEADA", transposed
                   ? fmt::format("leadDimension = {} : index, transpose", m)
                   : fmt::format("leadDimension = {} : index", 2 * k));
  set("LEADB", transposed
                   ? fmt::format("leadDimension = {} : index, transpose", 2 * k)
                   : fmt::format("leadDimension = {} : index", n));
  set("K", std::to_string(k));
  set("KK", std::to_string(2 * k));
  set("N", std::to_string(n));
  set("MEMA", memA);
  set("MEMB", memB);
  set("MEMC", memC);
  set("A", fmt::format("!gpu.mma_matrix<{}x{}x{}, \"AOp\">", m, k, factor));
  set("B", fmt::format("!gpu.mma_matrix<{}x{}x{}, \"BOp\">", k, n, factor));
  set("C", fmt::format("!gpu.mma_matrix<{}x{}x{}, \"COp\">", m, n, sum));
  return {"matrix_" + name,
          module("%a: " + memA + ", %w: " + memB + ", %c: " + memC, body),
          {64},
          {2},
          {{code(stored), size_t(8 * m * k)},
           {code(stored), size_t(8 * k * n)},
           {code(sum), size_t(4 * m * n)}},
          {},
          false};
}

static KernelCase elementwiseCase(const std::string &name,
                                  const std::string &type, char code,
                                  const std::vector<std::string> &operations) {
  std::string matrix = "!gpu.mma_matrix<16x16x" + type + ", \"COp\">",
              memory = "memref<16x16x" + type + ">",
              out = "memref<" + std::to_string(operations.size() + 1) +
                    "x16x16x" + type + ">";
  std::string body =
      "%c0 = arith.constant 0 : index\n"
      "%two = arith.constant " +
      std::string(type[0] == 'f' ? "2.5" : "3") + " : " + type +
      "\n%f = gpu.subgroup_mma_constant_matrix %two : " + matrix + "\n";
  for (const char *each : {"x", "y"})
    body += fmt::format("%{0}m = gpu.subgroup_mma_load_matrix %{0}[%c0, %c0] "
                        "{{leadDimension = 16 : index}} : {1} -> {2}\n",
                        each, memory, matrix);
  auto put = [&](const std::string &value, size_t row) {
    body +=
        fmt::format("%row{0} = arith.constant {0} : index\n"
                    "gpu.subgroup_mma_store_matrix {1}, %o[%row{0}, %c0, %c0] "
                    "{{leadDimension = 16 : index}} : {2}, {3}\n",
                    row, value, matrix, out);
  };
  for (size_t k = 0; k < operations.size(); ++k) {
    bool isUnary = operations[k].starts_with("negate");
    // Divided by a number that is not 0.
    bool isQuotient = operations[k].starts_with("div");
    body += fmt::format("%r{} = gpu.subgroup_mma_elementwise {} %xm{} : ({}{}) "
                        "-> {}\n",
                        k, operations[k],
                        isUnary      ? ""
                        : isQuotient ? ", %f"
                                     : ", %ym",
                        matrix, isUnary ? "" : ", " + matrix, matrix);
    put("%r" + std::to_string(k), k);
  }
  put("%f", operations.size());
  return {name,
          module("%x: " + memory + ", %y: " + memory + ", %o: " + out, body),
          {32},
          {1},
          {{code, 256}, {code, 256}, {code, 256 * (operations.size() + 1)}},
          {},
          false};
}

static KernelCase fragmentsCase() {
  // Each lane's elements, doubled one by one; through workgroup memory, whose
  // rows are padded; and f16 sums widened.
  return {"matrix_fragments",
          module("%x: memref<16x16xf16>, %o: memref<2x8x32xf32>, "
                 "%p: memref<20x20xf32>",
                 R"(
    %t = gpu.thread_id x
    %s = gpu.subgroup_id : index
    %lane = gpu.lane_id
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %tile = memref.alloca() : memref<16x24xf16, #gpu.address_space<workgroup>>
    scf.for %i = %c0 to %c16 step %c1 {
      %in = arith.cmpi slt, %t, %c16 : index
      scf.if %in {
        %v = memref.load %x[%i, %t] : memref<16x16xf16>
        memref.store %v, %tile[%i, %t] : memref<16x24xf16, #gpu.address_space<workgroup>>
      }
    }
    gpu.barrier
    %m = gpu.subgroup_mma_load_matrix %tile[%c0, %c0] {leadDimension = 24 : index} : memref<16x24xf16, #gpu.address_space<workgroup>> -> !gpu.mma_matrix<16x16xf16, "COp">
    %wide = gpu.subgroup_mma_elementwise extf %m : (!gpu.mma_matrix<16x16xf16, "COp">) -> !gpu.mma_matrix<16x16xf32, "COp">
    %twice = scf.for %k = %c0 to %c8 step %c1 iter_args(%held = %wide) -> (!gpu.mma_matrix<16x16xf32, "COp">) {
      %e = gpu.subgroup_mma_extract_thread_local %held[%k] : !gpu.mma_matrix<16x16xf32, "COp"> -> f32
      %d = arith.addf %e, %e : f32
      memref.store %d, %o[%s, %k, %lane] : memref<2x8x32xf32>
      %n = gpu.subgroup_mma_insert_thread_local %d, %held[%k] : f32, !gpu.mma_matrix<16x16xf32, "COp"> -> !gpu.mma_matrix<16x16xf32, "COp">
      scf.yield %n : !gpu.mma_matrix<16x16xf32, "COp">
    }
    %first = arith.cmpi eq, %c0, %c0 : index
    gpu.subgroup_mma_store_matrix %twice, %p[%c2, %c2] {leadDimension = 20 : index, transpose} : !gpu.mma_matrix<16x16xf32, "COp">, memref<20x20xf32>)"),
          {64},
          {1},
          {{'h', 256}, {'f', 512}, {'f', 400}},
          {},
          false};
}

static KernelCase laneZeroCase() {
  return {"lane_zero",
          module("%x: memref<2x96xf32>, %o: memref<2x64x4xf32>, "
                 "%p: memref<2x64xi32>, %q: memref<2x64x4xf32>",
                 R"(
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %s = gpu.subgroup_id : index
    %lane = gpu.lane_id
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %zero = arith.constant dense<0.0> : vector<2xf32>
    // Twice: what one trip writes the next must not find.
    %last = scf.for %k = %c0 to %c2 step %c1 iter_args(%held = %zero) -> (vector<2xf32>) {
      %one = vector.load %x[%b, %t] : memref<2x96xf32>, vector<1xf32>
      %pair = vector.load %x[%b, %lane] : memref<2x96xf32>, vector<2xf32>
      %both = arith.addf %pair, %held : vector<2xf32>
      %grid = vector.shape_cast %both : vector<2xf32> to vector<1x2xf32>
      %r:4 = gpu.warp_execute_on_lane_0(%lane)[32] args(%one, %grid, %k : vector<1xf32>, vector<1x2xf32>, index) -> (vector<2xf32>, i32, vector<3x1xf32>, vector<1xi1>) {
      ^bb0(%all: vector<32xf32>, %rows: vector<4x16xf32>, %trip: index):
        %sum = vector.reduction <add>, %all : vector<32xf32> into f32
        %flat = vector.shape_cast %rows : vector<4x16xf32> to vector<64xf32>
        %spread = vector.broadcast %sum : f32 to vector<64xf32>
        %given = arith.addf %flat, %spread : vector<64xf32>
        %n = arith.index_cast %s : index to i32
        %tripped = arith.index_cast %trip : index to i32
        %number = arith.addi %n, %tripped : i32
        %row = vector.extract %rows[1] : vector<16xf32> from vector<4x16xf32>
        %column = vector.broadcast %all : vector<32xf32> to vector<3x32xf32>
        %limit = arith.constant dense<0.5> : vector<32xf32>
        %above = arith.cmpf ogt, %all, %limit : vector<32xf32>
        gpu.yield %given, %number, %column, %above : vector<64xf32>, i32, vector<3x32xf32>, vector<32xi1>
      }
      %flag = vector.extract %r#3[0] : i1 from vector<1xi1>
      %f = arith.uitofp %flag : i1 to f32
      memref.store %f, %o[%b, %t, %c3] : memref<2x64x4xf32>
      vector.store %r#0, %o[%b, %t, %c0] : memref<2x64x4xf32>, vector<2xf32>
      memref.store %r#1, %p[%b, %t] : memref<2x64xi32>
      %e0 = vector.extract %r#2[0, 0] : f32 from vector<3x1xf32>
      %e2 = vector.extract %r#2[2, 0] : f32 from vector<3x1xf32>
      memref.store %e0, %q[%b, %t, %c0] : memref<2x64x4xf32>
      memref.store %e2, %q[%b, %t, %c2] : memref<2x64x4xf32>
      scf.yield %r#0 : vector<2xf32>
    }
    // Without values it is lane 0's turn, and nothing else.
    gpu.warp_execute_on_lane_0(%lane)[32] {
      %v = memref.load %x[%b, %t] : memref<2x96xf32>
      memref.store %v, %q[%b, %t, %c3] : memref<2x64x4xf32>
    })"),
          {64},
          {2},
          {{'f', 192}, {'f', 512}, {'i', 128}, {'f', 512}},
          {},
          false};
}

const std::vector<KernelCase> &matrixCases() {
  static const std::vector<KernelCase> cases = [] {
    std::vector<KernelCase> all;
    for (const MatrixProductCase &each : matrixProducts())
      all.push_back(each.asCase());
    std::vector<std::string> floats{"addf", "mulf", "subf",   "maxf",
                                    "minf", "divf", "negatef"};
    all.push_back(elementwiseCase("matrix_f32", "f32", 'f', floats));
    all.push_back(elementwiseCase("matrix_f16", "f16", 'h', floats));
    all.push_back(
        elementwiseCase("matrix_i32", "i32", 'i',
                        {"addi", "muli", "subi", "divs", "divu", "negates"}));
    all.push_back(fragmentsCase());
    all.push_back(laneZeroCase());
    return all;
  }();
  return cases;
}

} // namespace mgpu::kernels

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows whose elements threads share: a block for each of few long ones, a
// subgroup for each short one, and neighbouring threads for neighbouring ones
// that lie across memory. Sums in the order that docs/numerics.md states, on
// the host target and as CUDA C++ run on the processor, by as many threads as
// the kernel's space offers; and NVRTC takes the text in corners of it.
#include "tests/conformance/Import.h"
#include "tests/conformance/KernelMemory.h"
#include "tests/conformance/RowOrder.h"

#include "pipeline/compiler/KernelBuild.h"
#include "planner/dag/LaunchFacts.h"
#include "tests/unit/compile/Nvrtc.h"
#include "tests/unit/kernels/CornerCheck.h"
#include "tests/unit/kernels/KernelRunner.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace mgpu;
using namespace mgpu::conformance;
using namespace mgpu::kernels;

namespace {

using P = kernels::KernelParameter;

constexpr size_t rows = 33;

/// Who shares a row.
struct Sharing {
  const char *name;
  bool across; ///< rows lie across memory
  RowOrder order;
  Dim3 block, grid;
};

constexpr Sharing byBlock{"block", false, {256, true}, {256, 1, 1}, {33, 1, 1}},
    bySubgroup{"subgroup", false, {32, true}, {32, 8, 1}, {5, 1, 1}},
    byColumns{"columns", true, {8, false}, {32, 8, 1}, {2, 1, 1}};

struct RowCase {
  const char *name;
  size_t length;
  Sharing sharing;
  /// It computes on %x and %y, which are rows x length, and on %s and %m, which
  /// have one element a row; $n is the length, $d the dimension along a row.
  const char *body;
  /// By row: what %s, %m and %y are then, bit for bit.
  void (*reference)(const float *x, size_t length, RowOrder order, float &s,
                    float &m, float *y);
};

void PrintTo(const RowCase &shown, std::ostream *os) { *os << shown.name; }

#define REDUCE "iterator_types = [\"parallel\", \"reduction\"]"
#define POINTS "iterator_types = [\"parallel\", \"parallel\"]"

const char *const sumAndLargest = R"(
  linalg.generic {indexing_maps = [#xy, #row, #row], )" REDUCE R"(}
      ins(%x : $x) outs(%s, %m : $r, $r) {
  ^bb0(%in: f32, %sum: f32, %most: f32):
    %t = arith.addf %sum, %in : f32
    %u = arith.maximumf %most, %in : f32
    linalg.yield %t, %u : f32, f32
  })",
                  *const softmax = R"(
  linalg.softmax dimension($d) ins(%x : $x) outs(%y : $x))",
                  *const layerNorm = R"(
  %zero = arith.constant 0.0 : f32
  %n = arith.constant $n.0 : f32
  linalg.fill ins(%zero : f32) outs(%s : $r)
  linalg.generic {indexing_maps = [#xy, #row], )" REDUCE R"(}
      ins(%x : $x) outs(%s : $r) {
  ^bb0(%in: f32, %sum: f32):
    %t = arith.addf %sum, %in : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [#i], iterator_types = ["parallel"]}
      outs(%s : $r) {
  ^bb0(%sum: f32):
    %t = arith.divf %sum, %n : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [#xy, #row, #xy], )" POINTS R"(}
      ins(%x, %s : $x, $r) outs(%y : $x) {
  ^bb0(%in: f32, %mean: f32, %o: f32):
    %t = arith.subf %in, %mean : f32
    linalg.yield %t : f32
  }
  linalg.fill ins(%zero : f32) outs(%m : $r)
  linalg.generic {indexing_maps = [#xy, #row], )" REDUCE R"(}
      ins(%y : $x) outs(%m : $r) {
  ^bb0(%in: f32, %sum: f32):
    %q = arith.mulf %in, %in : f32
    %t = arith.addf %sum, %q : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [#xy, #row, #xy], )" POINTS R"(}
      ins(%y, %m : $x, $r) outs(%y : $x) {
  ^bb0(%in: f32, %square: f32, %o: f32):
    %t = arith.divf %square, %n : f32
    %root = math.sqrt %t : f32
    %q = arith.divf %in, %root : f32
    linalg.yield %q : f32
  })";

void referenceOfSums(const float *x, size_t length, RowOrder order, float &s,
                     float &m, float *) {
  s += sumOf(length, order, [&](size_t k) { return x[k]; });
  for (size_t k = 0; k < length; ++k)
    m = std::max(m, x[k]);
}

void referenceOfNorm(const float *x, size_t length, RowOrder order, float &s,
                     float &m, float *y) {
  float n = float(length);
  s = (0.0f + sumOf(length, order, [&](size_t k) { return x[k]; })) / n;
  for (size_t k = 0; k < length; ++k)
    y[k] = x[k] - s;
  m = 0.0f + sumOf(length, order, [&](size_t k) { return y[k] * y[k]; });
  for (size_t k = 0; k < length; ++k)
    y[k] = y[k] / std::sqrt(m / n);
}

std::vector<RowCase> rowCases() {
  return {
      {"a_sum_and_the_largest", 1000, byBlock, sumAndLargest, referenceOfSums},
      {"softmax", 515, byBlock, softmax, nullptr},
      {"layer_norm", 768, byBlock, layerNorm, referenceOfNorm},
      {"short_sums", 70, bySubgroup, sumAndLargest, referenceOfSums},
      {"shortest_sums", 32, bySubgroup, sumAndLargest, referenceOfSums},
      {"short_softmax", 48, bySubgroup, softmax, nullptr},
      {"short_norm", 255, bySubgroup, layerNorm, referenceOfNorm},
      {"column_sums", 101, byColumns, sumAndLargest, referenceOfSums},
      {"column_softmax", 64, byColumns, softmax, nullptr},
      {"column_norm", 64, byColumns, layerNorm, referenceOfNorm},
  };
}

std::string programOf(const RowCase &test) {
  const bool across = test.sharing.across;
  std::string matrix = "memref<" + std::to_string(across ? test.length : rows) +
                       "x" + std::to_string(across ? rows : test.length) +
                       "xf32>";
  std::string row = "memref<" + std::to_string(rows) + "xf32>";
  std::string text = "#xy = affine_map<(i, j) -> (" +
                     std::string(across ? "j, i" : "i, j") +
                     ")>\n"
                     "#row = affine_map<(i, j) -> (i)>\n"
                     "#i = affine_map<(i) -> (i)>\n"
                     R"(
mgpu.device_config @config #mgpu.device_config<numDevices = 1>
func.func @main(%hx: $x, %hs: $r, %hm: $r, %hy: $x) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d = mgpu.get_device %c0 : !mgpu.device
)";
  std::string back;
  for (auto [name, type] :
       {std::pair("x", "$x"), {"s", "$r"}, {"m", "$r"}, {"y", "$x"}}) {
    std::string n = name, t = type;
    text += "  %" + n + " = mgpu.alloc %d : !mgpu.device -> " + t +
            "\n  mgpu.memcpy %" + n + ", %h" + n + ", %d, %host : " + t + ", " +
            t + ", !mgpu.device, !mgpu.device\n";
    back += "  mgpu.memcpy %h" + n + ", %" + n + ", %host, %d : " + t + ", " +
            t + ", !mgpu.device, !mgpu.device\n";
  }
  text += std::string(test.body) + "\n" + back + "  return\n}\n";
  for (auto [mark, type] : {std::pair("$x", matrix),
                            {"$r", row},
                            {"$n", std::to_string(test.length)},
                            {"$d", std::string(across ? "0" : "1")}})
    for (size_t at; (at = text.find(mark)) != std::string::npos;)
      text.replace(at, 2, type);
  return text;
}

float *floatsOf(std::vector<std::byte> &bytes) {
  return reinterpret_cast<float *>(bytes.data());
}

class SharedRows : public testing::TestWithParam<RowCase> {};

TEST_P(SharedRows, AddInTheStatedOrderOnEachTarget) {
  const RowCase &test = GetParam();
  ImportRequest request;
  request.text = programOf(test);
  request.name = test.name;
  ImportOutcome outcome = Importer().import(request);
  ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
  const planner::Dag &dag = *outcome.dag;
  ASSERT_EQ(dag.kernels.size(), 1u);
  const planner::KernelSpec &spec = dag.kernels[0];
  const planner::KernelCall &call = firstCall(dag, 0);
  EXPECT_EQ(spec.block, test.sharing.block);
  EXPECT_EQ(call.grid, test.sharing.grid);

  Memory initial = memoryFor(dag, call);
  std::mt19937 random(11);
  std::map<std::string, uint32_t> idOf; // by name of the buffer
  for (auto &[id, bytes] : initial) {
    idOf[dag.buffer(planner::BufferId{id}).name] = id;
    for (size_t k = 0; k < bytes.size() / 4; ++k)
      floatsOf(bytes)[k] = float(int(random() % 20001) - 10000) / 777;
  }
  auto host = LoadedKernel::fromText(**spec.hostText(), spec.block);
  ASSERT_TRUE(host) << host.error().message;
  Memory expected = initial;
  (*host)->run(call.grid, argumentsFor(call, expected));

  // The reference, and for softmax that each row is one.
  auto find = [&](Memory &memory, char name) -> float * {
    for (auto &[text, id] : idOf)
      if (!text.empty() && text.back() == name)
        return floatsOf(memory[id]);
    return nullptr;
  };
  Memory reference = initial;
  const size_t n = test.length;
  // Element k of row r.
  auto place = [&](size_t r, size_t k) {
    return test.sharing.across ? k * rows + r : r * n + k;
  };
  auto rowOf = [&](const float *matrix, size_t r) {
    std::vector<float> row(n);
    for (size_t k = 0; k < n && matrix; ++k)
      row[k] = matrix[place(r, k)];
    return row;
  };
  float *s = find(reference, 's'), *m = find(reference, 'm'),
        *y = find(reference, 'y'), unused = 0;
  for (size_t r = 0; r < rows; ++r) {
    const std::vector<float> x = rowOf(find(reference, 'x'), r);
    std::vector<float> out = rowOf(y, r);
    if (test.reference) {
      test.reference(x.data(), n, test.sharing.order, s ? s[r] : unused,
                     m ? m[r] : unused, out.data());
    } else {
      const std::vector<float> got = rowOf(find(expected, 'y'), r);
      double most = -INFINITY, sum = 0;
      for (size_t k = 0; k < n; ++k)
        most = std::max(most, double(x[k]));
      for (size_t k = 0; k < n; ++k)
        sum += std::exp(x[k] - most);
      for (size_t k = 0; k < n; ++k)
        EXPECT_NEAR(got[k], std::exp(x[k] - most) / sum, 1e-6);
      out = got;
    }
    for (size_t k = 0; k < n && y; ++k)
      y[place(r, k)] = out[k];
  }
  EXPECT_EQ(expected, reference);
  EXPECT_NE(expected, initial);

  Dim3 grid = planner::largestGrids(dag)[0];
  auto space = kernelSpaceOf(spec, grid, kernels::KernelTarget::Cuda);
  ASSERT_TRUE(space) << space.error().message;
  const planner::LaunchFacts facts = planner::launchFacts(dag)[0];
  auto kernel = emitCudaText(spec, {spec.name, "", spec.block, grid,
                                    facts.alignment, facts.unwritten});
  ASSERT_TRUE(kernel) << kernel.error().message;
  CudaTwins twins;
  auto add = [&](const std::string &name, kernels::KernelConfig config) {
    ASSERT_TRUE(space->check(config)) << toText(config);
    twins.add({spec.name + "_" + name, *kernel, *space, config});
  };
  if (test.sharing.block.x == 256) {
    EXPECT_EQ(space->choice(P::Vector).values,
              (std::vector<uint32_t>{1, 2, 4, 8}));
    for (uint32_t vector : space->choice(P::Vector).values) {
      kernels::KernelConfig config = space->defaults;
      config[P::Vector] = vector;
      config[P::BlockX] = 256 / vector;
      for (uint32_t beside : space->choice(P::BlockY).values) {
        config[P::BlockY] = beside;
        if (beside == 1 || vector == 8)
          add(std::to_string(vector) + "_" + std::to_string(beside), config);
        else
          EXPECT_FALSE(space->check(config)) << toText(config);
      }
      config[P::BlockY] = 1;
      config[P::Items] = 4;
      if (vector == 2)
        add("items", config);
      config[P::BlockX] = 64 * vector;
      EXPECT_EQ(space->check(config).has_value(), vector == 2)
          << toText(config);
    }
  } else {
    const auto &vectors = space->choice(P::Vector).values;
    EXPECT_EQ(vectors.size() > 1, !test.sharing.across); // of subgroups
    for (uint32_t vector : vectors) {
      kernels::KernelConfig config = space->defaults;
      config[P::Vector] = vector;
      config[P::BlockX] = spec.block.x / vector;
      add(std::to_string(vector), config);
      config[P::Items] = 2;
      add(std::to_string(vector) + "_items", config);
    }
  }
  auto ready = twins.compile();
  ASSERT_TRUE(ready) << ready.error().message;
  for (const TwinConfig &twin : twins.configs) {
    Memory got = initial;
    twins.run(twin.entry, call.grid, argumentsFor(call, got));
    EXPECT_EQ(got, expected) << toText(twin.config);
  }
}

TEST(SharedRowsCorners, Compile) {
  MGPU_OPEN_NVRTC(compiler);
  CornerCheck check;
  for (const RowCase &test : rowCases()) {
    ImportRequest request;
    request.text = programOf(test);
    request.name = test.name;
    ImportOutcome outcome = Importer().import(request);
    ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
    const planner::KernelSpec &spec = outcome.dag->kernels[0];
    Dim3 grid = planner::largestGrids(*outcome.dag)[0];
    auto space = kernelSpaceOf(spec, grid, kernels::KernelTarget::Cuda);
    ASSERT_TRUE(space) << space.error().message;
    auto kernel = emitCudaText(spec, {test.name, "", spec.block, grid});
    ASSERT_TRUE(kernel) << kernel.error().message;
    check.add(*kernel, *space);
  }
  check.run(*compiler);
}

INSTANTIATE_TEST_SUITE_P(All, SharedRows, testing::ValuesIn(rowCases()),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

} // namespace

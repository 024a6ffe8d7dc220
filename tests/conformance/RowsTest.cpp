// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Few long rows, a block for each: sums in the order that docs/numerics.md
// states, on the host target and as CUDA C++ run on the processor, by as many
// threads as its space offers; and NVRTC takes the text in these corners.
#include "tests/conformance/Import.h"
#include "tests/conformance/KernelMemory.h"

#include "kernels/compile/CudaConfig.h"
#include "kernels/compile/PtxasLog.h"
#include "kernels/emit/KernelBuild.h"
#include "tests/unit/compile/Nvrtc.h"
#include "tests/unit/kernels/CudaTwin.h"
#include "tests/unit/kernels/KernelRunner.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace mgpu;
using namespace mgpu::conformance;
using namespace mgpu::kernels;

namespace {

using P = planner::KernelParameter;

constexpr size_t rows = 33;

struct RowCase {
  const char *name;
  size_t length;
  const char *maps;
  /// On %x, of rows x length, %s and %m, of rows, and %y, as %x.
  const char *body;
  size_t kernels; ///< it becomes
  /// By row: what %s, %m and %y are then, bit for bit.
  void (*reference)(const float *x, size_t length, float &s, float &m,
                    float *y);
};

void PrintTo(const RowCase &shown, std::ostream *os) { *os << shown.name; }

/// docs/numerics.md: 256 parts, of every 256th number from `neutral` on; then
/// neighbouring parts up to 32, and those one after the other.
template <typename At, typename Combine>
float inStatedOrder(size_t length, float neutral, At at, Combine combine) {
  std::vector<float> parts(256, neutral);
  for (size_t k = 0; k < length; ++k)
    parts[k % 256] = combine(parts[k % 256], at(k));
  for (size_t step = 1; step < 32; step *= 2)
    for (size_t k = 0; k < 256; k += 2 * step)
      parts[k] = combine(parts[k], parts[k + step]);
  float all = parts[0];
  for (size_t k = 32; k < 256; k += 32)
    all = combine(all, parts[k]);
  return all;
}

template <typename At>
float sumOf(size_t length, At at) {
  return inStatedOrder(length, -0.0f, at,
                       [](float a, float b) { return a + b; });
}

const char *const twoMaps = "#xy = affine_map<(i, j) -> (i, j)>\n"
                            "#row = affine_map<(i, j) -> (i)>\n"
                            "#i = affine_map<(i) -> (i)>\n";

#define REDUCE "iterator_types = [\"parallel\", \"reduction\"]"
#define POINTS "iterator_types = [\"parallel\", \"parallel\"]"

std::vector<RowCase> cases() {
  return {
      {"a_sum_and_the_largest", 1000, twoMaps, R"(
  linalg.generic {indexing_maps = [#xy, #row, #row], )" REDUCE R"(}
      ins(%x : $x) outs(%s, %m : $r, $r) {
  ^bb0(%in: f32, %sum: f32, %most: f32):
    %t = arith.addf %sum, %in : f32
    %u = arith.maximumf %most, %in : f32
    linalg.yield %t, %u : f32, f32
  })",
       1,
       [](const float *x, size_t length, float &s, float &m, float *) {
         s += sumOf(length, [&](size_t k) { return x[k]; });
         for (size_t k = 0; k < length; ++k)
           m = std::max(m, x[k]);
       }},
      {"softmax", 515, twoMaps, R"(
  linalg.softmax dimension(1) ins(%x : $x) outs(%y : $x))",
       1, nullptr},
      {"layer_norm", 768, twoMaps, R"(
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 768.0 : f32
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
  })",
       1,
       [](const float *x, size_t length, float &s, float &m, float *y) {
         float n = float(length);
         s = (0.0f + sumOf(length, [&](size_t k) { return x[k]; })) / n;
         for (size_t k = 0; k < length; ++k)
           y[k] = x[k] - s;
         m = 0.0f + sumOf(length, [&](size_t k) { return y[k] * y[k]; });
         for (size_t k = 0; k < length; ++k)
           y[k] = y[k] / std::sqrt(m / n);
       }},
  };
}

std::string programOf(const RowCase &test) {
  std::string matrix = "memref<" + std::to_string(rows) + "x" +
                       std::to_string(test.length) + "xf32>";
  std::string row = "memref<" + std::to_string(rows) + "xf32>";
  std::string text = std::string(test.maps) + R"(
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
  for (auto [mark, type] : {std::pair("$x", matrix), {"$r", row}})
    for (size_t at; (at = text.find(mark)) != std::string::npos;)
      text.replace(at, 2, type);
  return text;
}

float *floatsOf(std::vector<std::byte> &bytes) {
  return reinterpret_cast<float *>(bytes.data());
}

class LongRows : public testing::TestWithParam<RowCase> {};

TEST_P(LongRows, AddInTheStatedOrderOnEachTarget) {
  const RowCase &test = GetParam();
  ImportRequest request;
  request.text = programOf(test);
  request.name = test.name;
  ImportOutcome outcome = Importer().import(request);
  ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
  const planner::Dag &dag = *outcome.dag;
  ASSERT_EQ(dag.kernels.size(), test.kernels);
  const planner::KernelSpec &spec = dag.kernels[0];
  const planner::KernelCall &call = firstCall(dag, 0);
  EXPECT_EQ(spec.block, (Dim3{256, 1, 1}));
  EXPECT_EQ(call.grid.volume(), rows);

  Memory initial = memoryFor(dag, call);
  std::mt19937 random(11);
  std::map<std::string, uint32_t> idOf; // by name of the buffer
  for (auto &[id, bytes] : initial) {
    idOf[dag.buffer(planner::BufferId{id}).name] = id;
    for (size_t k = 0; k < bytes.size() / 4; ++k)
      floatsOf(bytes)[k] = float(int(random() % 20001) - 10000) / 777;
  }
  auto host = LoadedKernel::fromText(spec.source, spec.block);
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
  std::vector<float> unused(rows * test.length);
  auto orUnused = [&](float *found) { return found ? found : unused.data(); };
  for (size_t r = 0; r < rows; ++r) {
    float *y = orUnused(find(reference, 'y')) + r * test.length;
    if (test.reference) {
      test.reference(find(reference, 'x') + r * test.length, test.length,
                     orUnused(find(reference, 's'))[r],
                     orUnused(find(reference, 'm'))[r], y);
      continue;
    }
    const float *x = find(reference, 'x') + r * test.length;
    float *got = find(expected, 'y') + r * test.length;
    double most = -INFINITY, sum = 0;
    for (size_t k = 0; k < test.length; ++k)
      most = std::max(most, double(x[k]));
    for (size_t k = 0; k < test.length; ++k)
      sum += std::exp(x[k] - most);
    for (size_t k = 0; k < test.length; ++k) {
      EXPECT_NEAR(got[k], std::exp(x[k] - most) / sum, 1e-6);
      y[k] = got[k];
    }
  }
  EXPECT_EQ(expected, reference);
  EXPECT_NE(expected, initial);

  Dim3 grid = planner::largestGrids(dag)[0];
  auto space = kernelSpaceOf(spec, grid, planner::KernelTarget::Cuda);
  ASSERT_TRUE(space) << space.error().message;
  auto kernel = emitCudaText(spec.source, {spec.name, "", spec.block, grid});
  ASSERT_TRUE(kernel) << kernel.error().message;
  EXPECT_EQ(space->choice(P::Vector).values,
            (std::vector<uint32_t>{1, 2, 4, 8}));
  CudaTwins twins;
  for (uint32_t vector : space->choice(P::Vector).values)
    for (uint32_t items : {1, 4}) {
      if (items > 1 && vector != 2)
        continue;
      planner::KernelConfig config = space->defaults;
      config[P::Vector] = vector;
      config[P::BlockX] = 256 / vector;
      config[P::Items] = items;
      ASSERT_TRUE(space->check(config)) << toText(config);
      twins.add({spec.name + "_" + std::to_string(vector) + "_" +
                     std::to_string(items),
                 *kernel, *space, config});
      config[P::BlockX] = 64 * vector;
      EXPECT_EQ(space->check(config).has_value(), vector == 2)
          << toText(config);
    }
  auto ready = twins.compile();
  ASSERT_TRUE(ready) << ready.error().message;
  for (const TwinConfig &twin : twins.configs) {
    Memory got = initial;
    twins.run(twin.entry, call.grid, argumentsFor(call, got));
    EXPECT_EQ(got, expected) << toText(twin.config);
  }
  MGPU_OPEN_NVRTC(compiler);
  std::vector<CompileJob> jobs;
  for (const char *arch : {"sm_80", "sm_90", "sm_100"})
    jobs.push_back({twins.source(), "rows.cu", {"--fmad=false"}, arch});
  for (auto &program : compiler->compileAll(jobs)) {
    ASSERT_TRUE(program) << program.error().message;
    EXPECT_FALSE(hasWarning(program->log)) << program->log;
  }
}

INSTANTIATE_TEST_SUITE_P(All, LongRows, testing::ValuesIn(cases()),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

} // namespace

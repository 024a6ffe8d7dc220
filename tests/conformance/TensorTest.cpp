// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// linalg operations and parallel loops on device buffers against loops written
// here, on whole numbers, which every order of additions leaves exact.
#include "tests/conformance/Execute.h"
#include "tests/conformance/Import.h"

#include <cmath>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <sstream>

using namespace mgpu;
using namespace mgpu::conformance;

namespace {

using Floats = std::vector<float>;
using At = size_t;

struct TensorCase {
  const char *name;
  std::string x, w, out; ///< shapes, as in memref<...xf32>
  const char *before;    ///< what stands before the function: maps
  const char *body;      ///< on %x, %w and %out, on the device
  std::function<void(const Floats &, const Floats &, Floats &)> reference;
  bool racesAreErrors = true; ///< what it touches is known exactly
};

void PrintTo(const TensorCase &shown, std::ostream *os) { *os << shown.name; }

size_t countOf(const std::string &shape) {
  size_t count = 1, size;
  char x;
  for (std::istringstream sizes(shape); sizes >> size; sizes >> x)
    count *= size;
  return count;
}

std::string typeOf(const std::string &shape) {
  return "memref<" + shape + (shape.empty() ? "" : "x") + "f32>";
}

std::string programOf(const TensorCase &test) {
  std::string x = typeOf(test.x), w = typeOf(test.w), out = typeOf(test.out);
  std::string text =
      "mgpu.device_config @config #mgpu.device_config<numDevices "
      "= 1>\n" +
      std::string(test.before) + "\nfunc.func @main(%hx: " + x + ", %hw: " + w +
      ", %hout: " + out + ") {\n" + R"(
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d = mgpu.get_device %c0 : !mgpu.device
)";
  for (auto [name, type] : {std::pair("x", x), {"w", w}, {"out", out}}) {
    std::string n = name;
    text += "  %" + n + " = mgpu.alloc %d : !mgpu.device -> " + type +
            "\n  mgpu.memcpy %" + n + ", %h" + n + ", %d, %host : " + type +
            ", " + type + ", !mgpu.device, !mgpu.device\n";
  }
  return text + test.body + "\n  mgpu.memcpy %hout, %out, %host, %d : " + out +
         ", " + out + ", !mgpu.device, !mgpu.device\n  return\n}\n";
}

std::vector<std::byte> bytesOf(const Floats &values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<TensorCase> cases() {
  return {
      {"matmul_no_size_of_which_divides", "70x13", "13x37", "70x37", "",
       "linalg.matmul ins(%x, %w : memref<70x13xf32>, memref<13x37xf32>) "
       "outs(%out : memref<70x37xf32>)",
       [](const Floats &x, const Floats &w, Floats &out) {
         for (At i = 0; i < 70; ++i)
           for (At j = 0; j < 37; ++j)
             for (At k = 0; k < 13; ++k)
               out[i * 37 + j] =
                   std::fma(x[i * 13 + k], w[k * 37 + j], out[i * 37 + j]);
       }},
      {"batch_matmul", "3x33x9", "3x9x40", "3x33x40", "",
       "linalg.batch_matmul ins(%x, %w : memref<3x33x9xf32>, "
       "memref<3x9x40xf32>) outs(%out : memref<3x33x40xf32>)",
       [](const Floats &x, const Floats &w, Floats &out) {
         for (At b = 0; b < 3; ++b)
           for (At i = 0; i < 33; ++i)
             for (At j = 0; j < 40; ++j)
               for (At k = 0; k < 9; ++k)
                 out[(b * 33 + i) * 40 + j] =
                     std::fma(x[(b * 33 + i) * 9 + k], w[(b * 9 + k) * 40 + j],
                              out[(b * 33 + i) * 40 + j]);
       }},
      {"turned_matmul", "40x13", "37x13", "40x37", "",
       R"(linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (i, k)>,
         affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>]
       ins(%x, %w : memref<40x13xf32>, memref<37x13xf32>)
       outs(%out : memref<40x37xf32>))",
       [](const Floats &x, const Floats &w, Floats &out) {
         for (At i = 0; i < 40; ++i)
           for (At j = 0; j < 37; ++j)
             for (At k = 0; k < 13; ++k)
               out[i * 37 + j] =
                   std::fma(x[i * 13 + k], w[j * 13 + k], out[i * 37 + j]);
       }},
      {"turned_batch_matmul", "3x33x9", "3x40x9", "3x33x40", "",
       R"(linalg.batch_matmul indexing_maps = [affine_map<(b, i, j, k) -> (b, i, k)>,
         affine_map<(b, i, j, k) -> (b, j, k)>, affine_map<(b, i, j, k) -> (b, i, j)>]
       ins(%x, %w : memref<3x33x9xf32>, memref<3x40x9xf32>)
       outs(%out : memref<3x33x40xf32>))",
       [](const Floats &x, const Floats &w, Floats &out) {
         for (At b = 0; b < 3; ++b)
           for (At i = 0; i < 33; ++i)
             for (At j = 0; j < 40; ++j)
               for (At k = 0; k < 9; ++k)
                 out[(b * 33 + i) * 40 + j] =
                     std::fma(x[(b * 33 + i) * 9 + k], w[(b * 40 + j) * 9 + k],
                              out[(b * 33 + i) * 40 + j]);
       }},
      {"matmul_of_halves_added_in_f32", "24x40", "40x16", "24x16",
       "#id = affine_map<(i, j) -> (i, j)>", R"(
  %xh = mgpu.alloc %d : !mgpu.device -> memref<24x40xf16>
  %wh = mgpu.alloc %d : !mgpu.device -> memref<40x16xf16>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<24x40xf32>) outs(%xh : memref<24x40xf16>) {
  ^bb0(%in: f32, %o: f16):
    %h = arith.truncf %in : f32 to f16
    linalg.yield %h : f16
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w : memref<40x16xf32>) outs(%wh : memref<40x16xf16>) {
  ^bb0(%in: f32, %o: f16):
    %h = arith.truncf %in : f32 to f16
    linalg.yield %h : f16
  }
  linalg.matmul ins(%xh, %wh : memref<24x40xf16>, memref<40x16xf16>) outs(%out : memref<24x16xf32>))",
       [](const Floats &x, const Floats &w, Floats &out) {
         for (At i = 0; i < 24; ++i)
           for (At j = 0; j < 16; ++j)
             for (At k = 0; k < 40; ++k)
               out[i * 16 + j] += x[i * 40 + k] * w[k * 16 + j];
       }},
      {"four_dimensions_permuted_and_their_indices", "9x5x3x33", "1",
       "3x5x33x9",
       "#in = affine_map<(a, b, c, d) -> (d, b, a, c)>\n"
       "#out = affine_map<(a, b, c, d) -> (a, b, c, d)>",
       R"(
  linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : memref<9x5x3x33xf32>) outs(%out : memref<3x5x33x9xf32>) {
  ^bb0(%in: f32, %o: f32):
    %a = linalg.index 0 : index
    %b = linalg.index 1 : index
    %d3 = linalg.index 3 : index
    %c10 = arith.constant 10 : index
    %a10 = arith.muli %a, %c10 : index
    %ab = arith.addi %a10, %b : index
    %ab10 = arith.muli %ab, %c10 : index
    %abd = arith.addi %ab10, %d3 : index
    %n = arith.index_cast %abd : index to i32
    %f = arith.sitofp %n : i32 to f32
    %sum = arith.addf %in, %f : f32
    linalg.yield %sum : f32
  })",
       [](const Floats &x, const Floats &, Floats &out) {
         for (At a = 0; a < 3; ++a)
           for (At b = 0; b < 5; ++b)
             for (At c = 0; c < 33; ++c)
               for (At d = 0; d < 9; ++d)
                 out[((a * 5 + b) * 33 + c) * 9 + d] =
                     x[((d * 5 + b) * 3 + a) * 33 + c] +
                     float(a * 100 + b * 10 + d);
       },
       false},
      {"a_sliding_window", "40", "8", "33",
       "#in = affine_map<(i, j) -> (i + j)>\n"
       "#w = affine_map<(i, j) -> (j)>\n#out = affine_map<(i, j) -> (i)>",
       R"(
  linalg.generic {indexing_maps = [#in, #w, #out], iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : memref<40xf32>, memref<8xf32>) outs(%out : memref<33xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  })",
       [](const Floats &x, const Floats &w, Floats &out) {
         for (At i = 0; i < 33; ++i)
           for (At j = 0; j < 8; ++j)
             out[i] += x[i + j] * w[j];
       }},
      {"two_outputs_over_two_reductions", "11x6x7", "11", "11",
       "#in = affine_map<(i, j, k) -> (i, j, k)>\n"
       "#out = affine_map<(i, j, k) -> (i)>",
       R"(
  linalg.generic {indexing_maps = [#in, #out, #out], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%x : memref<11x6x7xf32>) outs(%out, %w : memref<11xf32>, memref<11xf32>) {
  ^bb0(%in: f32, %sum: f32, %most: f32):
    %s = arith.addf %sum, %in : f32
    %m = arith.maximumf %most, %in : f32
    linalg.yield %s, %m : f32, f32
  }
  linalg.add ins(%out, %w : memref<11xf32>, memref<11xf32>) outs(%out : memref<11xf32>))",
       [](const Floats &x, const Floats &w, Floats &out) {
         for (At i = 0; i < 11; ++i) {
           float most = w[i];
           for (At j = 0; j < 42; ++j) {
             out[i] += x[i * 42 + j];
             most = std::max(most, x[i * 42 + j]);
           }
           out[i] += most;
         }
       }},
      {"one_sum_of_all", "17x19", "1", "",
       "#in = affine_map<(i, j) -> (i, j)>\n#out = affine_map<(i, j) -> ()>",
       R"(
  linalg.generic {indexing_maps = [#in, #out], iterator_types = ["reduction", "reduction"]}
      ins(%x : memref<17x19xf32>) outs(%out : memref<f32>) {
  ^bb0(%in: f32, %sum: f32):
    %s = arith.addf %sum, %in : f32
    linalg.yield %s : f32
  })",
       [](const Floats &x, const Floats &, Floats &out) {
         for (float value : x)
           out[0] += value;
       }},
      {"parts_of_buffers", "8x64", "1", "8x64", "", R"(
  %from = memref.subview %x[1, 3] [5, 20] [1, 2] : memref<8x64xf32> to memref<5x20xf32, strided<[64, 2], offset: 67>>
  %to = memref.subview %out[2, 40] [5, 20] [1, 1] : memref<8x64xf32> to memref<5x20xf32, strided<[64, 1], offset: 168>>
  linalg.copy ins(%from : memref<5x20xf32, strided<[64, 2], offset: 67>>) outs(%to : memref<5x20xf32, strided<[64, 1], offset: 168>>))",
       [](const Floats &x, const Floats &, Floats &out) {
         for (At i = 0; i < 5; ++i)
           for (At j = 0; j < 20; ++j)
             out[(i + 2) * 64 + 40 + j] = x[(i + 1) * 64 + 3 + 2 * j];
       }},
      {"a_parallel_loop_with_steps", "50x90", "1", "50x90", "", R"(
  %c3 = arith.constant 3 : index
  %c7 = arith.constant 7 : index
  %c48 = arith.constant 48 : index
  %c90 = arith.constant 90 : index
  scf.parallel (%i, %j) = (%c3, %c0) to (%c48, %c90) step (%c3, %c7) {
    %v = memref.load %x[%i, %j] : memref<50x90xf32>
    %t = arith.addf %v, %v : f32
    memref.store %t, %out[%i, %j] : memref<50x90xf32>
  })",
       [](const Floats &x, const Floats &, Floats &out) {
         for (At i = 3; i < 48; i += 3)
           for (At j = 0; j < 90; j += 7)
             out[i * 90 + j] = 2 * x[i * 90 + j];
       }},
      {"an_empty_parallel_loop", "8", "1", "8", "", R"(
  scf.parallel (%i) = (%c0) to (%c0) step (%c1) {
    %v = memref.load %x[%i] : memref<8xf32>
    memref.store %v, %out[%i] : memref<8xf32>
  })",
       [](const Floats &, const Floats &, Floats &) {}},
  };
}

class Tensors : public testing::TestWithParam<TensorCase> {};

TEST_P(Tensors, DoWhatLoopsDo) {
  const TensorCase &test = GetParam();
  ImportRequest request;
  request.text = programOf(test);
  if (request.text.find("%c1)") != std::string::npos)
    request.text.insert(request.text.find("  %host ="),
                        "  %c1 = arith.constant 1 : index\n");
  request.name = test.name;
  request.racesAreErrors = test.racesAreErrors;
  ImportOutcome outcome = Importer().import(request);
  ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
  auto objects = KernelCache().compile(*outcome.dag);
  ASSERT_TRUE(objects) << objects.error().message;
  auto plan = makePlan(*outcome.dag, "list");
  ASSERT_TRUE(plan) << plan.error().message;
  std::mt19937 random(5);
  auto values = [&](const std::string &shape) {
    Floats made(countOf(shape));
    for (float &value : made)
      value = float(random() % 31) - 15;
    return made;
  };
  Floats x = values(test.x), w = values(test.w), out = values(test.out);
  HostData inputs{
      {"hx", bytesOf(x)}, {"hw", bytesOf(w)}, {"hout", bytesOf(out)}};
  test.reference(x, w, out);
  HostData expected{{"hout", bytesOf(out)}};
  auto got = execute(*outcome.dag, *plan, *objects, inputs, 1);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(difference(expected, HostData{{"hout", got->at("hout")}}), "");
}

INSTANTIATE_TEST_SUITE_P(All, Tensors, testing::ValuesIn(cases()),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

} // namespace

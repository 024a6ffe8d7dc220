// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What launches are said to ask of a GPU, and what is predicted of it: bad
// forms are predicted to take longer.
#include "WorkPrograms.h"

#include "planner/cost/TargetMachine.h"
#include "tests/unit/import/ImportText.h"

#include <gtest/gtest.h>

namespace mgpu::kernels {
namespace {

using namespace mgpu::planner;

/// The share of an H200's memory rate at which a program reads and writes
/// `bytes`, which it must, as it is predicted.
double shareOf(const std::string &program, double bytes) {
  auto topology = device::openTopology("sim:dgx-h200");
  Imported imported = importText(program);
  if (!topology || !imported.program) {
    ADD_FAILURE() << imported.text() << program;
    return 0;
  }
  const Machine model(*topology);
  double us = 0;
  for (size_t k = 0; k < imported.dag().nodes.size(); ++k)
    if (std::holds_alternative<KernelCall>(imported.dag().nodes[k].work))
      us += model.durationUs(imported.dag(), NodeId{uint32_t(k)});
  return bytes / (topology->device.memoryBytesPerSecond / 1e6) / us;
}

/// A vector by a matrix [k][n], as the linalg product that it is, or as a
/// launch of one thread for each column.
std::string decode(bool isProduct) {
  const std::string types[] = {"1x2048xbf16", "2048x8192xbf16", "1x8192xf32"};
  if (isProduct)
    return programOn(
        {types[0], types[1], types[2]},
        "  linalg.matmul ins(%b0, %b1 : memref<1x2048xbf16>, "
        "memref<2048x8192xbf16>) outs(%b2 : memref<1x8192xf32>)\n");
  return programOn(
      {types[0], types[1], types[2]},
      "  %grid = arith.constant 256 : index\n"
      "  %block = arith.constant 32 : index\n"
      "  %c1 = arith.constant 1 : index\n"
      "  %c2048 = arith.constant 2048 : index\n"
      "  mgpu.launch %d grid(%grid) block(%block) {\n"
      "    %j = gpu.global_id x\n"
      "    %zero = arith.constant 0.0 : f32\n"
      "    %sum = scf.for %k = %c0 to %c2048 step %c1 iter_args(%s = %zero) -> "
      "(f32) {\n"
      "      %x = memref.load %b0[%c0, %k] : memref<1x2048xbf16>\n"
      "      %w = memref.load %b1[%k, %j] : memref<2048x8192xbf16>\n"
      "      %xf = arith.extf %x : bf16 to f32\n"
      "      %wf = arith.extf %w : bf16 to f32\n"
      "      %p = arith.mulf %xf, %wf : f32\n"
      "      %t = arith.addf %s, %p : f32\n"
      "      scf.yield %t : f32\n"
      "    }\n"
      "    memref.store %sum, %b2[%c0, %j] : memref<1x8192xf32>\n"
      "  }\n");
}

/// bf16 whose rows have an odd number of elements, so that no access may be
/// wider than one.
std::string narrowElementwise() {
  const std::string type = "16384x4095xbf16", shape = "memref<" + type + ">";
  const std::string view =
      "memref<16384x4094xbf16, strided<[4095, 1], offset: 1>>";
  std::string text, taken;
  for (const char *name : {"0", "1", "2"})
    text += std::string("  %v") + name + " = memref.subview %b" + name +
            "[0, 1] [16384, 4094] [1, 1] : " + shape + " to " + view + "\n";
  return programOn({type, type, type},
                   text + "  linalg.mul ins(%v0, %v1 : " + view + ", " + view +
                       ") outs(%v2 : " + view + ")\n");
}

TEST(Work, BadFormsArePredictedToTakeLonger) {
  const double mega = 1 << 20;
  const double f32 = shareOf(elementwise("f32"), 3 * 256 * mega),
               bf16 = shareOf(elementwise("bf16"), 3 * 128 * mega),
               narrow = shareOf(narrowElementwise(), 3 * 128 * mega),
               rows = shareOf(rowSoftmax("f32"), 2 * 128 * mega),
               turned = shareOf(transposition(), 2 * 256 * mega),
               vector = shareOf(decode(true), 32 * mega),
               columns = shareOf(decode(false), 32 * mega);
  // By default accesses are wide where they are aligned, and else as narrow as
  // the elements.
  EXPECT_GT(f32, 0.8);
  EXPECT_LT(f32, 0.92);
  EXPECT_NEAR(bf16, f32, 0.02);
  EXPECT_GT(f32, rows);
  EXPECT_GT(rows, 1.2 * narrow);
  // Lanes that load from rows of their own; threads for a tenth of the GPU.
  EXPECT_GT(narrow, 1.1 * turned);
  EXPECT_GT(turned, 4 * columns);
  EXPECT_GT(vector, 4 * columns);
  EXPECT_LT(columns, 0.1);
}

} // namespace
} // namespace mgpu::kernels

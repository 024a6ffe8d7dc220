// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of a few vectors read the matrix once, by wide loads, in enough
// threads for a whole GPU.
#include "MachineCode.h"

#include "tests/unit/compile/Nvrtc.h"
#include "tests/unit/import/ImportText.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::kernels {
namespace {

std::string productOf(const std::string &x, const std::string &w,
                      const std::string &y, const std::string &maps = "") {
  return programOn({x, w, y}, "  linalg.matmul " + maps +
                                  " ins(%b0, %b1 : memref<" + x + ">, memref<" +
                                  w + ">) outs(%b2 : memref<" + y + ">)\n");
}

const std::string transposed =
    "indexing_maps = [affine_map<(i, j, k) -> (i, k)>, "
    "affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>]";

/// The matrix is one of a decode step, of 33.6 MB.
TEST(SkinnyCode, AVectorByColumnsOccupiesTheGpu) {
  MGPU_OPEN_NVRTC(compiler);
  auto codes = machineCodeOf(
      productOf("1x2048xbf16", "2048x8192xbf16", "1x8192xf32"),
      "vector=8 block_x=32 unroll=8", /*awaits=*/false, /*configured=*/1);
  ASSERT_TRUE(codes) << codes.error().message;
  ASSERT_EQ(codes->size(), 2u);
  const MachineCode &chunks = codes->front();
  EXPECT_EQ(chunks.blocks * 32 / 8, 32768u); // threads of 8 columns each
  EXPECT_EQ(chunks.count("LDG.128"), 8u) << chunks.text();
  EXPECT_EQ(chunks.before("FADD").count("LDG.128"), 8u) << chunks.text();
  EXPECT_LE(chunks.registers, 96u) << chunks.text();
}

/// Four vectors by the rows of a matrix: a thread loads each of its elements
/// once, whatever the vectors are.
TEST(SkinnyCode, VectorsByRowsLoadTheMatrixOnce) {
  MGPU_OPEN_NVRTC(compiler);
  std::vector<size_t> loads;
  for (const char *m : {"1", "4"}) {
    auto codes =
        machineCodeOf(productOf(std::string(m) + "x2048xbf16", "8192x2048xbf16",
                                std::string(m) + "x8192xf32", transposed),
                      "vector=8 block_x=32");
    ASSERT_TRUE(codes) << codes.error().message;
    ASSERT_EQ(codes->size(), 1u);
    const MachineCode &code = codes->front();
    EXPECT_EQ(code.blocks, 8192u); // a row of the matrix each
    EXPECT_EQ(code.count("LDG.16"), 0u) << code.text();
    EXPECT_EQ(code.count("LDL") + code.count("STL"), 0u) << code.text();
    loads.push_back(code.count("LDG.128"));
  }
  // One of the matrix and one of each vector, as often as loops are unrolled.
  EXPECT_EQ(loads[0] % 2, 0u);
  EXPECT_EQ(loads[1] % 5, 0u);
  EXPECT_LT(loads[1], 8 * loads[0] / 2);
}

struct Columns {
  const char *type;
  unsigned vectors, ahead; ///< loads of the matrix under way at once
  unsigned registers;
};

/// By columns, as a batch of a decode step has them: each thread has 16 bytes
/// of neighbouring columns, and all their sums in registers.
TEST(SkinnyCode, VectorsByColumnsLoadTheMatrixOnce) {
  MGPU_OPEN_NVRTC(compiler);
  for (const Columns &test : {Columns{"bf16", 2, 8, 112},
                              {"f16", 3, 4, 128},
                              {"bf16", 4, 4, 128},
                              {"f32", 2, 8, 112},
                              {"f32", 8, 4, 128},
                              {"f32", 16, 2, 128}}) {
    SCOPED_TRACE(fmt::format("{} of {}", test.vectors, test.type));
    auto codes = machineCodeOf(
        productOf(fmt::format("{}x2048x{}", test.vectors, test.type),
                  fmt::format("2048x8192x{}", test.type),
                  fmt::format("{}x8192xf32", test.vectors)),
        "");
    ASSERT_TRUE(codes) << codes.error().message;
    ASSERT_EQ(codes->size(), 2u);
    const MachineCode &code = codes->front();
    const bool isWide = test.type == std::string("f32");
    const size_t columns = isWide ? 4 : 8;
    // A step of the loop loads the matrix once, and of each vector a number.
    const size_t steps = code.count("LDG.128");
    EXPECT_EQ(code.count("LDG.128.NA"), steps) << code.text();
    EXPECT_EQ(code.count(isWide ? "LDG.32" : "LDG.16"), test.vectors * steps)
        << code.text();
    EXPECT_EQ(code.count("LDG"), (test.vectors + 1) * steps) << code.text();
    EXPECT_EQ(code.count("FFMA"), test.vectors * columns * steps)
        << code.text();
    EXPECT_GE(code.before("FFMA").count("LDG.128"), test.ahead) << code.text();
    EXPECT_EQ(code.count("STG.128"), test.vectors * columns / 4) << code.text();
    EXPECT_EQ(code.count("LDL") + code.count("STL"), 0u) << code.text();
    EXPECT_LE(code.registers, test.registers) << code.text();
    // A GPU has some blocks for each multiprocessor.
    EXPECT_GE(code.blocks * 256 / columns / code.threads, 256u);
  }
}

/// What is predicted has the bytes of the matrix once, whatever the vectors
/// are, and their chunks' sums.
TEST(SkinnyCode, TheMatrixIsPredictedToBeReadOnce) {
  for (unsigned m : {2u, 3u, 4u}) {
    planner::Imported imported = planner::importText(
        productOf(fmt::format("{}x2048xbf16", m), "2048x8192xbf16",
                  fmt::format("{}x8192xf32", m)));
    ASSERT_TRUE(imported.program) << imported.text();
    double most = 0;
    for (const planner::DagNode &node : imported.dag().nodes)
      if (node.asks)
        most = std::max(most, node.asks->movedBytes);
    const double matrix = 2048.0 * 8192 * 2, sums = 32.0 * 8192 * 4 * m;
    EXPECT_GE(most, matrix + sums);
    EXPECT_LE(most, 1.02 * (matrix + sums));
  }
}

} // namespace
} // namespace mgpu::kernels

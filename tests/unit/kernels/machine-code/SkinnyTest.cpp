// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of a few vectors read the matrix once, by wide loads, in enough
// threads for a whole GPU.
#include "MachineCode.h"

#include "tests/unit/compile/Nvrtc.h"

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

/// Eight vectors by the rows of a matrix: a thread loads each of its elements
/// once, whatever the vectors are.
TEST(SkinnyCode, VectorsByRowsLoadTheMatrixOnce) {
  MGPU_OPEN_NVRTC(compiler);
  std::vector<size_t> loads;
  for (const char *m : {"1", "8"}) {
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
  EXPECT_EQ(loads[1] % 9, 0u);
  EXPECT_LT(loads[1], 16 * loads[0] / 2);
}

} // namespace
} // namespace mgpu::kernels

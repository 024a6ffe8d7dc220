// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels whose rows threads share load and store each element once, and early.
#include "MachineCode.h"

#include "tests/unit/compile/Nvrtc.h"

namespace mgpu::kernels {
namespace {

const std::string softmax =
    programOn({"8192x4096xf32", "8192x4096xf32"},
              "  linalg.softmax dimension(1) ins(%b0 : memref<8192x4096xf32>) "
              "outs(%b1 : memref<8192x4096xf32>)\n");

TEST(RowsCode, SoftmaxKeepsItsRowInRegisters) {
  MGPU_OPEN_NVRTC(compiler);
  constexpr size_t elements = 16; // of a thread: 4096 / 256
  for (auto [config, width] :
       {std::pair("vector=1 block_x=256", 32), {"", 128}}) {
    auto codes = machineCodeOf(softmax, config);
    ASSERT_TRUE(codes) << codes.error().message;
    ASSERT_EQ(codes->size(), 1u);
    const MachineCode &code = codes->front();
    const std::string load = "LDG." + std::to_string(width),
                      store = "STG." + std::to_string(width);
    EXPECT_EQ(code.count(load), elements) << code.text();
    EXPECT_EQ(code.count("LDG"), elements) << code.text();
    EXPECT_EQ(code.count(store), elements) << code.text();
    EXPECT_EQ(code.count("STG"), elements) << code.text();
    EXPECT_EQ(code.count("LDL") + code.count("STL"), 0u) << code.text();
  }
}

TEST(RowsCode, RowsOfAProductAreLoadedBeforeTheyAreAdded) {
  MGPU_OPEN_NVRTC(compiler);
  auto codes = machineCodeOf(
      programOn({"2048xbf16", "8192x2048xbf16", "8192xf32"},
                "  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, "
                "#all, #rows], iterator_types = [\"parallel\", "
                "\"reduction\"]}\n"
                "      ins(%b0, %b1 : memref<2048xbf16>, "
                "memref<8192x2048xbf16>) outs(%b2 : memref<8192xf32>) {\n"
                "  ^bb0(%x: bf16, %w: bf16, %sum: f32):\n"
                "    %a = arith.extf %x : bf16 to f32\n"
                "    %b = arith.extf %w : bf16 to f32\n"
                "    %product = arith.mulf %a, %b : f32\n"
                "    %next = arith.addf %sum, %product : f32\n"
                "    linalg.yield %next : f32\n"
                "  }\n"),
      "vector=8 block_x=32 unroll=8");
  ASSERT_TRUE(codes) << codes.error().message;
  const MachineCode &code = codes->front();
  EXPECT_EQ(code.count("LDG.16"), 0u) << code.text();
  EXPECT_EQ(code.count("LDG.128"), 16u) << code.text();
  EXPECT_GE(code.before("FADD").count("LDG.128"), 8u) << code.text();
  EXPECT_LE(code.registers, 96u) << code.text();
}

/// A matrix that is read once passes by the first cache, which the vector that
/// all rows have in common stays in. By default a warp has a row, and a block
/// four of them.
TEST(RowsCode, ByDefaultAWarpHasARowAndWhatIsReadOncePassesByTheCache) {
  MGPU_OPEN_NVRTC(compiler);
  auto codes = machineCodeOf(
      programOn({"1x2048xbf16", "8192x2048xbf16", "1x8192xf32"},
                "  linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (i, "
                "k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> "
                "(i, j)>] ins(%b0, %b1 : memref<1x2048xbf16>, "
                "memref<8192x2048xbf16>) outs(%b2 : memref<1x8192xf32>)\n"),
      "");
  ASSERT_TRUE(codes) << codes.error().message;
  ASSERT_EQ(codes->size(), 1u);
  const MachineCode &code = codes->front();
  constexpr size_t accesses = 2048 / 32 / 8; // of a lane, of each operand
  EXPECT_EQ(code.count("LDG.128.NA"), accesses) << code.text();
  EXPECT_EQ(code.count("LDG.128"), 2 * accesses) << code.text();
  EXPECT_EQ(code.count("LDG.16") + code.count("LDG.32"), 1u) << code.text();
  EXPECT_EQ(code.count("BAR"), 0u) << code.text();
  EXPECT_EQ(code.threads, 4u * 32) << code.text();
}

/// A matrix that nothing writes while the program is replayed is asked for
/// before the kernel waits for the one it follows; one that is new each time is
/// not.
TEST(RowsCode, SteadyOperandsAreFetchedBeforeTheWait) {
  MGPU_OPEN_NVRTC(compiler);
  std::string text = programOn(
      {"1x2048xbf16", "8192x2048xbf16", "1x8192xf32"},
      "  linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (i, k)>, "
      "affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>] "
      "ins(%b0, %b1 : memref<1x2048xbf16>, memref<8192x2048xbf16>) outs(%b2 : "
      "memref<1x8192xf32>)\n");
  for (bool isSteady : {false, true}) {
    if (const std::string matrix = "%h1: memref<8192x2048xbf16>"; isSteady)
      text.replace(text.find(matrix), matrix.size(),
                   matrix + " {mgpu.role = \"resident\"}");
    auto codes = machineCodeOf(text, "", /*awaits=*/true);
    ASSERT_TRUE(codes) << codes.error().message;
    const MachineCode &code = codes->front();
    EXPECT_EQ(code.count("ACQBULK"), 1u) << code.text();
    EXPECT_EQ(code.before("ACQBULK").count("LDG"), 0u) << code.text();
    EXPECT_EQ(code.count("UBLKPF"), isSteady ? 1u : 0u) << code.text();
    EXPECT_EQ(code.before("ACQBULK").count("UBLKPF"), isSteady ? 1u : 0u);
    EXPECT_EQ(code.constants(), 0u) << code.text(); // the vector is new
  }
}

/// A root-mean-square norm of one row: the sum and what it scales.
TEST(RowsCode, ANormOfOneRowIsOneLaunch) {
  MGPU_OPEN_NVRTC(compiler);
  auto codes = machineCodeOf(
      programOn(
          {"1x2048xf32", "1xf32", "1x2048xf32"},
          "  %zero = arith.constant 0.0 : f32\n"
          "  %share = arith.constant 4.8828125e-04 : f32\n"
          "  linalg.fill ins(%zero : f32) outs(%b1 : memref<1xf32>)\n"
          "  linalg.generic {indexing_maps = [#all, #rows], iterator_types = "
          "[\"parallel\", \"reduction\"]}\n"
          "      ins(%b0 : memref<1x2048xf32>) outs(%b1 : memref<1xf32>) {\n"
          "  ^bb0(%x: f32, %sum: f32):\n"
          "    %square = arith.mulf %x, %x : f32\n"
          "    %next = arith.addf %sum, %square : f32\n"
          "    linalg.yield %next : f32\n"
          "  }\n"
          "  linalg.generic {indexing_maps = [#all, #rows, #all], "
          "iterator_types = [\"parallel\", \"parallel\"]}\n"
          "      ins(%b0, %b1 : memref<1x2048xf32>, memref<1xf32>) outs(%b2 : "
          "memref<1x2048xf32>) {\n"
          "  ^bb0(%x: f32, %sum: f32, %out: f32):\n"
          "    %mean = arith.mulf %sum, %share : f32\n"
          "    %rms = math.rsqrt %mean : f32\n"
          "    %normal = arith.mulf %x, %rms : f32\n"
          "    linalg.yield %normal : f32\n"
          "  }\n"),
      "");
  ASSERT_TRUE(codes) << codes.error().message;
  ASSERT_EQ(codes->size(), 1u);
  const MachineCode &code = codes->front();
  constexpr size_t elements = 8; // of a thread: 2048 / 256
  EXPECT_EQ(code.count("STG.32"), elements + 2)
      << code.text(); // and the sum, twice
}

/// No load is moved before the wait for the kernel that the launch follows.
TEST(RowsCode, NothingIsLoadedBeforeTheWait) {
  MGPU_OPEN_NVRTC(compiler);
  for (const char *config : {"", "vector=1 block_x=256"}) {
    auto codes = machineCodeOf(softmax, config, /*awaits=*/true);
    ASSERT_TRUE(codes) << codes.error().message;
    const MachineCode &code = codes->front();
    EXPECT_EQ(code.count("ACQBULK"), 1u) << code.text();
    EXPECT_LT(code.first("ACQBULK"), code.first("LDG")) << code.text();
  }
}

} // namespace
} // namespace mgpu::kernels

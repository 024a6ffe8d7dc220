// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A candidate of the tuner is predicted by its own configuration: what a launch
// asks of a GPU in it, and the order of the predictions.
#include "WorkPrograms.h"

#include "kernels/compile/CudaConfig.h"
#include "kernels/compile/CudaText.h"
#include "kernels/cuda/ProductForms.h"
#include "pipeline/compiler/KernelBuild.h"
#include "pipeline/compiler/ParsedKernel.h"
#include "planner/cost/TargetMachine.h"
#include "planner/dag/LaunchFacts.h"
#include "tests/unit/import/ImportText.h"

#include <gtest/gtest.h>

#include <span>

namespace mgpu::kernels {
namespace {

using namespace mgpu::planner;

/// A program of which one launch counts: the one that takes longest.
class Launch {
public:
  explicit Launch(const std::string &program,
                  const std::string &form = "threads")
      : imported(importText(program)) {
    auto topology = device::openTopology("sim:dgx-h200");
    if (!topology || !imported.program) {
      ADD_FAILURE() << imported.text() << program;
      return;
    }
    model.emplace(*topology);
    for (const DagNode &each : dag().nodes)
      if (std::holds_alternative<KernelCall>(each.work) &&
          (!node ||
           model->launchedUs(dag(), each) > model->launchedUs(dag(), *node)))
        node = &each;
    if (!node)
      return;
    text.form = form;
    text.space = spaceFor(form);
  }

  const DagNode &asImported() const { return *node; }
  double usAsImported() const { return model->launchedUs(dag(), *node); }
  /// In a configuration, written as what differs from the default one.
  LaunchWork workIn(const std::string &config) const {
    auto parsed = parseKernelConfig(config, text.space->defaults);
    if (!parsed || !text.space->check(*parsed)) {
      ADD_FAILURE() << config << ": "
                    << (parsed ? text.space->check(*parsed).error().message
                               : parsed.error().message);
      return {};
    }
    auto works = launchWorkOf(spec(), text, std::span(&*parsed, 1));
    if (!works.front()) {
      ADD_FAILURE() << config << " is not counted";
      return {};
    }
    return *works.front();
  }
  double usIn(const std::string &config) const {
    DagNode copy = *node;
    copy.asks = workIn(config);
    copy.isMatmul = text.form == "tensor_cores" || text.form == "wgmma";
    return model->launchedUs(dag(), copy);
  }

private:
  const Dag &dag() const { return imported.dag(); }
  const KernelCall &call() const { return std::get<KernelCall>(node->work); }
  const KernelSpec &spec() const { return dag().kernels[call().kernel.value]; }
  KernelSpace spaceFor(const std::string &form) const {
    const Dim3 grid = launchFacts(dag())[call().kernel.value].maxGrid;
    if (form == "tensor_cores" || form == "wgmma") {
      auto parsed = parseKernel(spec());
      return (form == "wgmma" ? wgmmaMatmulSpace : tensorMatmulSpace)(
          *parsed->module, spec().block, grid);
    }
    return *kernelSpaceOf(spec(), grid, KernelTarget::Cuda);
  }

  Imported imported;
  std::optional<Machine> model;
  const DagNode *node = nullptr;
  CudaText text;
};

/// m x k by k x n, of which B may be stored n x k.
std::string product(int m, int n, int k, const std::string &element,
                    const std::string &sums, bool isTurned = false) {
  auto typeOf = [](int rows, int columns, const std::string &each) {
    return std::to_string(rows) + "x" + std::to_string(columns) + "x" + each;
  };
  const std::string a = typeOf(m, k, element), c = typeOf(m, n, sums),
                    b = isTurned ? typeOf(n, k, element)
                                 : typeOf(k, n, element);
  const std::string maps =
      isTurned ? "indexing_maps = [affine_map<(i, j, k) -> (i, k)>, "
                 "affine_map<(i, j, k) -> (j, k)>, "
                 "affine_map<(i, j, k) -> (i, j)>] "
               : "";
  return programOn({a, b, c}, "  linalg.matmul " + maps +
                                  "ins(%b0, %b1 : memref<" + a + ">, memref<" +
                                  b + ">) outs(%b2 : memref<" + c + ">)\n");
}

// The kernel's text says of the default what the program's import said.
TEST(ConfigWork, DefaultsAreCountedAsTheyAreImported) {
  for (const std::string &program :
       {elementwise("bf16"), rowSoftmax("f32"), transposition(),
        product(1, 8192, 2048, "bf16", "f32"),
        product(1, 8192, 2048, "bf16", "f32", true)}) {
    const Launch launch(program);
    EXPECT_TRUE(launch.workIn("") == launch.asImported().asks) << program;
  }
  const Launch tiles(product(1024, 512, 256, "f32", "f32"), "tiles");
  EXPECT_TRUE(tiles.workIn("") == tiles.asImported().asks);
}

TEST(ConfigWork, NothingIsKnownOfAKernelWithoutFacts) {
  KernelSpec kernel;
  kernel.source = MlirKernel{"module {}"};
  CudaText text;
  text.space.emplace();
  const KernelConfig config;
  EXPECT_FALSE(launchWorkOf(kernel, text, std::span(&config, 1)).front());
  // Nor of tiles of a kernel that is no product.
  kernel.facts = KernelFacts{};
  text.form = "tiles";
  EXPECT_FALSE(launchWorkOf(kernel, text, std::span(&config, 1)).front());
}

TEST(ConfigWork, WideAccessesArePredictedToBeFaster) {
  const Launch bf16(elementwise("bf16")), f32(elementwise("f32"));
  const double one = bf16.usIn("vector=1"), two = bf16.usIn("vector=2"),
               eight = bf16.usIn("vector=8");
  EXPECT_GT(one, 1.5 * eight);
  EXPECT_GT(one, 1.2 * two);
  EXPECT_GE(two, eight);
  EXPECT_GE(f32.usIn("vector=1"), f32.usIn("vector=4"));
  // bf16 is bound by its instructions where f32 is by its bytes.
  EXPECT_LT(2 * eight, 1.05 * f32.usIn("vector=4"));
  EXPECT_GT(2 * one, 1.2 * f32.usIn("vector=1"));
  // A block covers 32 * 8 * 8 elements of 8 rows.
  EXPECT_EQ(bf16.workIn("vector=8 items=8").blocks, 2 * 16384 / 8);
}

TEST(ConfigWork, WarpsOfRowsArePredictedToBeFaster) {
  const Launch rows(rowSoftmax("bf16"));
  const std::string threads = "vector=1 block_x=256 block_y=1",
                    warps = "vector=8 block_x=32 block_y=4 unroll=2",
                    alone = "vector=8 block_x=32 block_y=1 unroll=2";
  EXPECT_GT(rows.usIn(threads), 1.2 * rows.usIn(warps));
  EXPECT_GT(rows.workIn(threads).instructions,
            1.5 * rows.workIn(warps).instructions);
  EXPECT_EQ(rows.workIn(warps).blocks, 8192 / 4);
  // A multiprocessor holds 32 blocks, and so half as many threads.
  EXPECT_GE(rows.usIn(alone), rows.usIn(warps));
  EXPECT_EQ(2 * rows.workIn(alone).flightBytes, rows.workIn(warps).flightBytes);
}

TEST(ConfigWork, TransposedTilesArePredictedToBeFaster) {
  const Launch turned(transposition());
  const double off = turned.usIn("block_x=32 block_y=32 vector=1 tunables=0"),
               on = turned.usIn("block_x=32 block_y=32 vector=1 tunables=1");
  EXPECT_GT(off, 1.5 * on);
  // 32 lines for the load and one for the store; then one each, and two of the
  // tile.
  EXPECT_GT(
      turned.workIn("block_x=32 block_y=32 vector=1 tunables=0").lines,
      6 * turned.workIn("block_x=32 block_y=32 vector=1 tunables=1").lines);
}

TEST(ConfigWork, DecodeIsPredictedByItsWidthAndLoadsAhead) {
  const Launch rows(product(1, 8192, 2048, "bf16", "f32", true));
  const double narrow = rows.usIn("vector=1 block_x=256 block_y=1 unroll=0"),
               wide = rows.usIn("vector=8 block_x=32 block_y=1 unroll=0"),
               ahead = rows.usIn("vector=8 block_x=32 block_y=1 unroll=8");
  EXPECT_GT(narrow, 1.3 * ahead);
  EXPECT_GE(narrow, wide);
  EXPECT_GE(wide, ahead);
  EXPECT_GT(rows.workIn("vector=8 block_x=32 block_y=1 unroll=4").flightBytes,
            rows.workIn("vector=8 block_x=32 block_y=1 unroll=1").flightBytes);
  // By default four rows share what they multiply with.
  EXPECT_GT(ahead, rows.usIn(""));
  const Launch columns(product(1, 8192, 2048, "bf16", "f32"));
  EXPECT_GT(columns.usIn("vector=1"), 1.2 * columns.usIn(""));
}

TEST(ConfigWork, TilesArePredictedByTheirSizes) {
  const Launch large(product(4096, 4096, 4096, "f32", "f32"), "tiles");
  const std::string four = "tile_x=4 tile_y=4", eight = "tile_x=8 tile_y=8";
  EXPECT_GT(large.usIn(four), 1.1 * large.usIn(eight));
  EXPECT_GT(large.usIn("tile_x=1 tile_y=1"), 2 * large.usIn(four));
  // Rows of A come once for each of 64 columns of blocks, C twice.
  const double matrix = 4096.0 * 4096 * 4;
  EXPECT_EQ(large.workIn(four).movedBytes, (2 * 64 + 2) * matrix);
  EXPECT_EQ(large.workIn(four).blocks, 64 * 64);
  EXPECT_GT(large.workIn(four).lines, 1.5 * large.workIn(eight).lines);
  // 16 large tiles are not enough for a GPU.
  const Launch small(product(512, 512, 512, "f32", "f32"), "tiles");
  EXPECT_LT(small.usIn(four), small.usIn(eight));
  // It is in the program, too.
  EXPECT_EQ(small.asImported().asks->blocks, 64);
}

TEST(ConfigWork, TensorCoresArePredictedByTheirTiles) {
  const std::string program = product(4096, 4096, 4096, "bf16", "f32");
  const Launch mma(program, "tensor_cores"), wgmma(program, "wgmma");
  // 128 x 128 and 64 x 64.
  EXPECT_GT(mma.usIn("tile_x=2 tile_y=8"), 1.5 * mma.usIn(""));
  EXPECT_GT(wgmma.usIn("tile_x=2"), wgmma.usIn(""));
  EXPECT_GT(wgmma.usIn(""), 1.1 * wgmma.usIn("tile_x=8"));
  // By default it is a library's, which is not known to do worse.
  EXPECT_LT(mma.usAsImported(), mma.usIn(""));
  // Without tensor cores no GPU would come near.
  EXPECT_LT(mma.usIn(""), 1000);
  const Launch threads(program);
  EXPECT_GT(threads.usIn(""), 2000);
}

} // namespace
} // namespace mgpu::kernels

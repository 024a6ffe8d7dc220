// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// MGPU_STAGE: what neighbours read, read once into shared memory. It changes no
// bit, and is offered only where it cannot.
#include "CudaTwin.h"
#include "KernelCases.h"
#include "KernelRunner.h"

#include "pipeline/compiler/KernelBuild.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

namespace mgpu::kernels {
namespace {

using P = KernelParameter;

KernelSpace spaceOf(const std::string &text, Dim3 block, Dim3 grid) {
  auto space = kernelSpaceOf(specOf(text, block), grid, KernelTarget::Cuda);
  EXPECT_TRUE(space) << (space ? "" : space.error().message);
  return space ? *space : KernelSpace();
}

/// A five-point stencil on rows of 40, of which those at the rim are copied.
const KernelCase planeStencil{
    "plane",
    module("%u: memref<26x40xf32, strided<[40, 1], offset: 5>>, "
           "%v: memref<26x40xf32>",
           R"(
    %x = gpu.global_id x
    %y = gpu.global_id y
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c39 = arith.constant 39 : index
    %c25 = arith.constant 25 : index
    %w = arith.cmpi sgt, %x, %c0 : index
    %e = arith.cmpi slt, %x, %c39 : index
    %n = arith.cmpi sgt, %y, %c0 : index
    %s = arith.cmpi slt, %y, %c25 : index
    %we = arith.andi %w, %e : i1
    %ns = arith.andi %n, %s : i1
    %in = arith.andi %we, %ns : i1
    %own = memref.load %u[%y, %x] : memref<26x40xf32, strided<[40, 1], offset: 5>>
    %all = scf.if %in -> f32 {
      %left = arith.subi %x, %c1 : index
      %right = arith.addi %x, %c1 : index
      %up = arith.subi %y, %c1 : index
      %down = arith.addi %y, %c1 : index
      %a = memref.load %u[%y, %left] : memref<26x40xf32, strided<[40, 1], offset: 5>>
      %b = memref.load %u[%y, %right] : memref<26x40xf32, strided<[40, 1], offset: 5>>
      %c = memref.load %u[%up, %x] : memref<26x40xf32, strided<[40, 1], offset: 5>>
      %d = memref.load %u[%down, %x] : memref<26x40xf32, strided<[40, 1], offset: 5>>
      %ab = arith.addf %a, %b : f32
      %cd = arith.subf %c, %d : f32
      %sum = arith.addf %ab, %cd : f32
      scf.yield %sum : f32
    } else {
      scf.yield %own : f32
    }
    %r = arith.addf %all, %own : f32
    memref.store %r, %v[%y, %x] : memref<26x40xf32>)"),
    {8, 2},
    {5, 13},
    {{'f', 26 * 40 + 5}, {'f', 26 * 40}},
    {}};

/// Two buffers and three axes; reads lie to one side.
const KernelCase boxStencil{
    "box",
    module("%u: memref<6x10x16xbf16>, %w: memref<18xf64>, "
           "%v: memref<4x8x16xf64>",
           R"(
    %x = gpu.global_id x
    %y = gpu.global_id y
    %z = gpu.global_id z
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %x2 = arith.addi %x, %c2 : index
    %y1 = arith.addi %y, %c1 : index
    %y2 = arith.addi %y, %c2 : index
    %z1 = arith.addi %z, %c1 : index
    %z2 = arith.addi %z, %c2 : index
    %a = memref.load %u[%z2, %y, %x] : memref<6x10x16xbf16>
    %b = memref.load %u[%z, %y2, %x] : memref<6x10x16xbf16>
    %c = memref.load %u[%z1, %y1, %x] : memref<6x10x16xbf16>
    %p = memref.load %w[%x] : memref<18xf64>
    %q = memref.load %w[%x2] : memref<18xf64>
    %ab = arith.addf %a, %b : bf16
    %abc = arith.subf %ab, %c : bf16
    %wide = arith.extf %abc : bf16 to f64
    %pq = arith.mulf %p, %q : f64
    %r = arith.addf %wide, %pq : f64
    memref.store %r, %v[%z, %y, %x] : memref<4x8x16xf64>)"),
    {4, 4, 2},
    {4, 2, 2},
    {{'h', 960}, {'d', 18}, {'d', 512}},
    {}};

/// A transposition: threads along x read a column.
const KernelCase turned{
    "turned",
    module("%u: memref<40x26xf32, strided<[26, 1], offset: 5>>, "
           "%v: memref<26x40xf32>",
           R"(
    %x = gpu.global_id x
    %y = gpu.global_id y
    %a = memref.load %u[%x, %y] : memref<40x26xf32, strided<[26, 1], offset: 5>>
    memref.store %a, %v[%y, %x] : memref<26x40xf32>)"),
    {8, 2},
    {5, 13},
    {{'f', 26 * 40 + 5}, {'f', 26 * 40}},
    {}};

/// What lies beside each other along z goes to places along x.
const KernelCase permuted{
    "permuted",
    module("%u: memref<8x16x4xbf16>, %v: memref<4x8x16xf32>",
           R"(
    %x = gpu.global_id x
    %y = gpu.global_id y
    %z = gpu.global_id z
    %a = memref.load %u[%y, %x, %z] : memref<8x16x4xbf16>
    %wide = arith.extf %a : bf16 to f32
    memref.store %wide, %v[%z, %y, %x] : memref<4x8x16xf32>)"),
    {4, 4, 2},
    {4, 2, 2},
    {{'h', 512}, {'f', 512}},
    {}};

TEST(Stage, ATileChangesNoBit) {
  CudaTwins twins;
  std::vector<std::pair<const KernelCase *, size_t>> cases;
  for (const KernelCase *each : {&kernelCase("stencil"), &planeStencil,
                                 &boxStencil, &turned, &permuted}) {
    KernelSpace space = spaceOf(each->text, each->block, each->grid);
    ASSERT_EQ(space.tunables().size(), 1u) << each->name;
    EXPECT_EQ(space.tunables()[0].name, "MGPU_STAGE");
    auto kernel =
        emitCudaText(each->text, {each->name, "", each->block, each->grid, 16});
    ASSERT_TRUE(kernel) << kernel.error().message;
    std::vector<KernelConfig> staged = cornersOf(space, SIZE_MAX);
    std::erase_if(staged, [](const KernelConfig &config) {
      return config.tunables[0] == 0;
    });
    // Each value of what decides a tile's size, in some corner.
    std::set<std::vector<uint32_t>> sizes;
    std::erase_if(staged, [&](const KernelConfig &config) {
      return !sizes
                  .insert({config[P::BlockX], config[P::BlockY],
                           config[P::BlockZ], config[P::Items],
                           config[P::Vector]})
                  .second;
    });
    ASSERT_GE(staged.size(), 8u) << each->name;
    for (const KernelConfig &config : staged)
      twins.add({each->name + std::to_string(twins.configs.size()), *kernel,
                 space, config});
    cases.push_back({each, twins.configs.size()});
  }
  auto compiled = twins.compile();
  ASSERT_TRUE(compiled) << compiled.error().message;
  size_t next = 0;
  for (auto [each, end] : cases) {
    auto host = load(each->text, each->block);
    ASSERT_TRUE(host);
    const auto initial = each->fill(11);
    auto expected = initial;
    host->run(each->grid, args(expected));
    ASSERT_NE(expected, initial);
    for (; next < end; ++next) {
      auto got = initial;
      twins.run(twins.configs[next].entry, each->grid, args(got));
      EXPECT_EQ(got, expected)
          << each->name << ": " << toText(twins.configs[next].config);
    }
  }
}

TEST(Stage, ATileIsTheBlockAndWhatLiesAroundIt) {
  KernelSpace space =
      spaceOf(planeStencil.text, planeStencil.block, planeStencil.grid);
  KernelConfig config = space.defaults;
  EXPECT_EQ(space.sharedBytesOf(config), 0u);
  config.tunables[0] = 1;
  config[P::BlockX] = 16;
  config[P::Vector] = 2;
  config[P::BlockY] = 4;
  config[P::Items] = 4; // one after the other, in the same tile
  EXPECT_EQ(space.sharedBytesOf(config), // in units of 128
            ((32 + 2) * (4 + 2) * 4 + 127) / 128 * 128u);
  config[P::Items] = 1;
  EXPECT_TRUE(space.check(config));
  // Rows of 64 that follow each other, blocks along them: one long row.
  const KernelCase &rows = kernelCase("stencil");
  space = spaceOf(rows.text, rows.block, rows.grid);
  config = space.defaults;
  config.tunables[0] = 1;
  config[P::BlockX] = 128;
  config[P::BlockY] = 2; // not along it
  EXPECT_EQ(space.sharedBytesOf(config), ((128 + 65) * 4 + 127) / 128 * 128u);
}

TEST(Stage, ColumnsOfATransposedTileLieInManyBanks) {
  KernelSpace space = spaceOf(turned.text, turned.block, turned.grid);
  KernelConfig config = space.defaults;
  config.tunables[0] = 1;
  config[P::BlockX] = 8;
  config[P::Vector] = 4;
  config[P::BlockY] = 32;
  EXPECT_TRUE(space.check(config));
  EXPECT_EQ(space.sharedBytesOf(config),
            (32 * (32 + 1) * 4 + 127) / 128 * 128u);
  // Other tiles have no use for so many rows.
  const std::vector<uint32_t> &y =
      spaceOf(planeStencil.text, planeStencil.block, planeStencil.grid)
          .choice(P::BlockY)
          .values;
  EXPECT_EQ(std::ranges::find(y, 32u), y.end());
}

TEST(Stage, TheTextIsTheReviewedOne) {
  auto kernel = emitCudaText(planeStencil.text,
                             {planeStencil.name, "stencil.mlir:1",
                              planeStencil.block, planeStencil.grid, 16});
  ASSERT_TRUE(kernel) << kernel.error().message;
  std::ifstream file(MGPU_SHIM_INCLUDE "/../../golden/staged_stencil.cu");
  std::string reviewed(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(kernel->image.blob, reviewed)
      << "tests/golden/staged_stencil.cu is to be reviewed";
}

TEST(Stage, IsRefusedWhereItMightChangeABit) {
  struct {
    const char *why, *arguments, *body;
  } refused[] = {
      {"one position alone", "%u: memref<64xf32>, %v: memref<64xf32>",
       R"(%a = memref.load %u[%i] : memref<64xf32>
          memref.store %a, %v[%i] : memref<64xf32>)"},
      {"written by the kernel", "%u: memref<66xf32>",
       R"(%j = arith.addi %i, %c2 : index
          %a = memref.load %u[%i] : memref<66xf32>
          %b = memref.load %u[%j] : memref<66xf32>
          %s = arith.addf %a, %b : f32
          memref.store %s, %u[%i] : memref<66xf32>)"},
      {"stored before, perhaps to the same buffer",
       "%u: memref<66xf32>, %v: memref<66xf32>",
       R"(%j = arith.addi %i, %c2 : index
          %a = memref.load %u[%i] : memref<66xf32>
          memref.store %a, %v[%j] : memref<66xf32>
          %b = memref.load %u[%j] : memref<66xf32>
          memref.store %b, %v[%i] : memref<66xf32>)"},
      {"stored in the trip before", "%u: memref<66xf32>, %v: memref<66xf32>",
       R"(%j = arith.addi %i, %c2 : index
          scf.for %k = %c0 to %c2 step %c1 {
            %a = memref.load %u[%i] : memref<66xf32>
            %b = memref.load %u[%j] : memref<66xf32>
            %s = arith.addf %a, %b : f32
            memref.store %s, %v[%i] : memref<66xf32>
          })"},
      {"not by neighbours", "%u: memref<130xf32>, %v: memref<64xf32>",
       R"(%p = arith.muli %i, %c2 : index
          %q = arith.addi %p, %c2 : index
          %a = memref.load %u[%p] : memref<130xf32>
          %b = memref.load %u[%q] : memref<130xf32>
          %s = arith.addf %a, %b : f32
          memref.store %s, %v[%i] : memref<64xf32>)"},
      {"far from each other", "%u: memref<2000xf32>, %v: memref<64xf32>",
       R"(%far = arith.constant 1900 : index
          %q = arith.addi %i, %far : index
          %a = memref.load %u[%i] : memref<2000xf32>
          %b = memref.load %u[%q] : memref<2000xf32>
          %s = arith.addf %a, %b : f32
          memref.store %s, %v[%i] : memref<64xf32>)"},
      {"threads that meet", "%u: memref<66xf32>, %v: memref<64xf32>",
       R"(%j = arith.addi %i, %c2 : index
          %a = memref.load %u[%i] : memref<66xf32>
          gpu.barrier
          %b = memref.load %u[%j] : memref<66xf32>
          %s = arith.addf %a, %b : f32
          memref.store %s, %v[%i] : memref<64xf32>)"},
  };
  for (const auto &[why, arguments, body] : refused) {
    const std::string text =
        module(arguments, std::string("%i = gpu.global_id x\n"
                                      "%c0 = arith.constant 0 : index\n"
                                      "%c1 = arith.constant 1 : index\n"
                                      "%c2 = arith.constant 2 : index\n") +
                              body);
    EXPECT_TRUE(spaceOf(text, {32}, {2}).tunables().empty()) << why;
    auto kernel = emitCudaText(text, {"k", "", {32}, {2}});
    ASSERT_TRUE(kernel) << why << ": " << kernel.error().message;
    EXPECT_EQ(kernel->image.blob.find("MGPU_STAGE"), std::string::npos) << why;
  }
}

} // namespace
} // namespace mgpu::kernels

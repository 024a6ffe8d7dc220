// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The CUDA target's own kernels as NVRTC compiles them.

#include "DeviceKernelList.h"
#include "FakeTarget.h"

#include "../compile/Nvrtc.h"
#include "../db/TempFolder.h"
#include "db/SqliteBlobCache.h"
#include "device/cuda/api/DeviceKernels.h"
#include "kernels/abi/CubinElf.h"
#include "kernels/compile/NvrtcCompiler.h"
#include "pipeline/build/Kernels.h"

#include <fmt/format.h>

namespace {

using namespace mgpu;
using namespace mgpu::kernels;

TEST(DeviceKernels, CompileWithoutAWarning) {
  MGPU_OPEN_NVRTC(compiler);
  // All of them for one architecture, and for the others one of each type;
  // together, because alone each costs NVRTC's fixed price.
  for (const char *arch : {"sm_90", "sm_80", "sm_100"}) {
    std::string source;
    std::vector<std::string> entries;
    size_t number = 0;
    for (const fake::DeviceProgram &program : fake::devicePrograms()) {
      const std::string &name = program.entries[0].name;
      if (std::string_view(arch) != "sm_90" &&
          name.starts_with("mgpu_reduce_") &&
          !name.starts_with("mgpu_reduce_sum_"))
        continue;
      source += fake::inNamespace(program, number++);
      for (const fake::DeviceProgram::Entry &entry : program.entries)
        entries.push_back(entry.name);
    }
    auto result = compiler->compile(
        {source, "device-kernels.cu", {"--fmad=false"}, arch});
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_FALSE(hasWarning(result->log)) << result->log;
    for (const std::string &entry : entries) {
      const EntryUsage *usage = result->find(entry);
      ASSERT_NE(usage, nullptr) << entry;
      EXPECT_EQ(usage->spillStoreBytes + usage->spillLoadBytes, 0u)
          << entry << " for " << arch;
      EXPECT_EQ(usage->stackBytes, 0u) << entry << " for " << arch;
    }
  }
}

/// A driver that does not take code of a newer toolkit is named with it.
TEST(DeviceKernels, OfANewerToolkitNameTheDriver) {
  MGPU_OPEN_NVRTC(compiler);
  auto made = compiler->compile(
      {"extern \"C\" __global__ void k() {}", "k.cu", {}, "sm_90"});
  ASSERT_TRUE(made) << made.error().message;
  const uint32_t toolkit = readCubin(made->cubin).toolkit;
  KernelImage image;
  image.entry = "k";
  image.takesPart = false;
  image.setBytes(made->cubin);
  for (const bool isOld : {false, true}) {
    fake::FakeCuda &fake = fake::freshMachine(); // refuses a real cubin
    fake.cudaVersion = int(toolkit - isOld) * 1000 + 80;
    auto driver = fake::openFake(fake::fakeOptions(1));
    ASSERT_TRUE(driver) << driver.error().message;
    auto loaded = (*driver)->loadKernel("k", encodeImage(image));
    ASSERT_FALSE(loaded);
    const std::string &words = loaded.error().message;
    EXPECT_EQ(words.find(fmt::format(
                  "kernel k on cuda:0: its code was compiled by CUDA {}, and "
                  "the NVIDIA driver is one of CUDA {}.8: install a driver of "
                  "CUDA {}.0 or later",
                  toolkit, toolkit - 1, toolkit)) == 0,
              isOld)
        << words;
    EXPECT_EQ(loaded.error().kind == ErrorKind::Absent, isOld);
  }
}

/// They are kept: whoever asks next compiles nothing.
TEST(DeviceKernels, AreCompiledOnceForADatabase) {
  db::TempFolder folder;
  const std::string database = folder / "a.db";
  auto kept = db::SqliteBlobCache::open(database);
  ASSERT_TRUE(kept) << kept.error().message;
  MGPU_OPEN_NVRTC(compiler, kept->get());
  const std::string source =
      device::reductionKernelSource(ElementType::F32, ReductionKind::Sum);
  const CompileJob job{source, "sum.cu", {"--fmad=false"}, "sm_90"};
  auto compile = pipeline::ownCompiler(database);
  auto cubin = compile(source, "sum", "sm_90");
  ASSERT_TRUE(cubin) << cubin.error().message;
  auto again = compiler->compile(job);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(again->fromCache);
  EXPECT_EQ(again->cubin, *cubin);
}

/// Those of a bundle are taken without NVRTC, for their architecture and text.
TEST(DeviceKernels, ABundlesAreTaken) {
  planner::Dag dag;
  planner::CollectiveCall call;
  call.kind = CollectiveKind::AllReduce;
  call.reduction = ReductionKind::Max;
  call.elementType = ElementType::BF16;
  planner::DagNode node;
  node.work = call;
  dag.nodes = {node, node};
  const std::string sum =
      device::reductionKernelSource(ElementType::BF16, ReductionKind::Max);
  auto programs = pipeline::ownPrograms(dag);
  ASSERT_EQ(programs.size(), 2u) << "copies, and the reduction once";
  capture::OwnCubins given;
  uint8_t number = 0;
  for (const std::string &text : programs)
    given[capture::ownKey("sm_90", text)] = {std::byte(++number),
                                             std::byte(text == sum)};
  db::TempFolder folder;
  auto compile = pipeline::ownCompiler(folder / "a.db", given);
  auto reduction = compile(sum, "reduction", "sm_90");
  auto move = compile(device::moveKernelSource(), "move", "sm_90");
  ASSERT_TRUE(reduction && move);
  EXPECT_EQ(reduction->size(), 2u);
  EXPECT_EQ(reduction->at(1), std::byte(1));
  EXPECT_EQ(move->at(1), std::byte(0));
  MGPU_OPEN_NVRTC(compiler);
  const std::string archs[] = {"sm_80", "sm_90"};
  auto made = pipeline::compileOwn(dag, archs, nullptr);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->size(), 4u);
  auto other = compile(sum, "reduction", "sm_80");
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ(made->at(capture::ownKey("sm_80", sum)), *other);
}

} // namespace

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "CornerCheck.h"

#include "kernels/compile/CudaConfig.h"
#include "kernels/compile/NvrtcCompiler.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace mgpu::kernels {

using P = KernelParameter;

bool takesAllCorners() {
  const char *asked = std::getenv("MGPU_CORNERS");
  return asked && std::strcmp(asked, "all") == 0;
}

/// What device::profileOfArchitecture knows it by: "sm_90a" is "sm_90".
static const device::DeviceProfile &gpuOf(const std::string &arch) {
  return *device::profileOfArchitecture(arch);
}

/// Whether the same configurations are legal on both (onDevice).
static bool allowTheSame(const device::DeviceProfile &a,
                         const device::DeviceProfile &b) {
  auto limits = [](const device::DeviceProfile &gpu) {
    constexpr uint32_t firstWithClusters = 90;
    return std::tuple(
        gpu.maxThreadsPerBlock, gpu.maxThreadsPerMultiprocessor,
        gpu.maxBlocksPerMultiprocessor, gpu.sharedBytesPerMultiprocessor,
        gpu.maxSharedBytesPerBlock, gpu.reservedSharedBytesPerBlock,
        gpu.architecture >= firstWithClusters);
  };
  return limits(a) == limits(b);
}

void CornerCheck::add(const CudaKernel &kernel, const KernelSpace &space,
                      size_t perArch, const std::vector<std::string> &archs) {
  const size_t number = kernels.size();
  kernels.push_back({kernel, space});
  // The header names the macro; a function that has two forms asks for it.
  const bool hasFastForm =
      kernel.image.blob.find("#if MGPU_FAST_MATH") != std::string::npos;
  const bool all = takesAllCorners();
  std::vector<KernelConfig> corners;
  const device::DeviceProfile *of = nullptr;
  for (size_t a = 0; a < archs.size(); ++a) {
    const device::DeviceProfile &gpu = gpuOf(archs[a]);
    if (!of || !allowTheSame(*of, gpu))
      corners = cornersOf(space, SIZE_MAX, archs[a].c_str());
    of = &gpu;
    EXPECT_FALSE(corners.empty()) << kernel.name << " for " << archs[a];
    std::vector<KernelConfig> taken;
    for (size_t c = 0; c < corners.size() && (all || c < perArch); ++c)
      // Kernels of one space take different ones.
      taken.push_back(corners[(c + (all ? 0 : (a + 5 * number) * perArch)) %
                              corners.size()]);
    if ((all || (a + number) % 3 == 0) &&
        std::find(taken.begin(), taken.end(), space.defaults) == taken.end())
      taken.push_back(space.defaults);
    std::vector<Variant> &variants = byArch[archs[a]];
    for (const KernelConfig &config : taken)
      for (bool fastMath : {false, true})
        if (!fastMath || (hasFastForm && (all ? config == space.defaults
                                              : (a + number) % 3 == 1)))
          variants.push_back(
              {number, fmt::format("e{}_{}", variants.size(), kernel.name),
               config, fastMath, config == space.defaults});
  }
}

void CornerCheck::addPoints(const CudaKernel &kernel, const KernelSpace &space,
                            size_t every, const std::string &arch) {
  const size_t number = kernels.size();
  kernels.push_back({kernel, space});
  std::vector<Variant> &variants = byArch[arch];
  const auto legal = onDevice(space, gpuOf(arch)).legal();
  for (size_t k = 0; k < legal.size(); k += takesAllCorners() ? 1 : every)
    variants.push_back({number,
                        fmt::format("e{}_{}", variants.size(), kernel.name),
                        legal[k], /*fastMath=*/false,
                        /*staysInRegisters=*/true});
}

BatchItem CornerCheck::itemOf(const Variant &variant) const {
  const Kernel &kernel = kernels[variant.kernel];
  BatchItem item{kernel.text.image.blob, kernel.text.image.entry, variant.entry,
                 macrosOf(kernel.space, variant.config)};
  if (variant.fastMath)
    item.macros.push_back({"MGPU_FAST_MATH", "1"});
  return item;
}

void CornerCheck::run(const NvrtcCompiler &compiler,
                      const std::string &accepted) {
  std::vector<std::string> options{"--fmad=false"};
  if (!accepted.empty())
    options.push_back("--diag-suppress=" + accepted);
  const auto start = std::chrono::steady_clock::now();
  constexpr size_t most = 64; // configurations of a program
  size_t count = 0, programs = 0;
  for (const auto &[arch, variants] : byArch) {
    count += variants.size();
    // A wave at a time: thousands of texts at once are gigabytes.
    for (size_t first = 0; first < variants.size();) {
      std::vector<CompileJob> jobs;
      std::vector<std::span<const Variant>> parts;
      for (; first < variants.size() && jobs.size() < 16; first += most) {
        std::span<const Variant> part(variants.data() + first,
                                      std::min(most, variants.size() - first));
        std::vector<BatchItem> items;
        for (const Variant &each : part)
          items.push_back(itemOf(each));
        jobs.push_back({batchSource(items), "corners.cu", options, arch});
        parts.push_back(part);
      }
      programs += jobs.size();
      auto results = compiler.compileAll(jobs);
      for (size_t k = 0; k < jobs.size(); ++k) {
        if (results[k]) {
          check(*results[k], arch, parts[k]);
          continue;
        }
        ADD_FAILURE() << results[k].error().message;
        for (const Variant &each : parts[k]) { // which one was it?
          BatchItem item = itemOf(each);
          auto alone = compiler.compile(
              {batchSource({&item, 1}), each.entry + ".cu", options, arch});
          EXPECT_TRUE(alone)
              << arch << " " << each.entry << " " << toText(each.config) << ": "
              << alone.error().message;
        }
      }
    }
  }
  fmt::print(
      "{} corners: {} kernels, {} configurations x architectures, {} "
      "programs in {:.1f} s\n",
      takesAllCorners() ? "all" : "some", kernels.size(), count, programs,
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count());
}

void CornerCheck::check(const CompiledKernel &program, const std::string &arch,
                        std::span<const Variant> variants) const {
  EXPECT_FALSE(hasWarning(program.log)) << arch << ": " << program.log;
  // C7510 and its like: "wgmma.mma_async instructions are serialized".
  EXPECT_EQ(program.log.find("(C75"), std::string::npos) << program.log;
  const Cubin cubin = readCubin(program.cubin);
  EXPECT_EQ(cubin.architecture, gpuOf(arch).architecture);
  EXPECT_EQ(program.entries.size(), variants.size());
  EXPECT_EQ(cubin.entries.size(), variants.size());
  for (const Variant &each : variants) {
    SCOPED_TRACE(arch + " " + each.entry + " " + toText(each.config));
    const EntryUsage *usage = program.find(each.entry);
    auto inFile = cubin.entries.find(each.entry);
    EXPECT_TRUE(usage);
    EXPECT_TRUE(inFile != cubin.entries.end());
    if (usage && inFile != cubin.entries.end())
      checkOne(each, *usage, inFile->second, arch);
  }
}

void CornerCheck::checkOne(const Variant &variant, const EntryUsage &usage,
                           const CubinEntry &inFile,
                           const std::string &arch) const {
  const Kernel &kernel = kernels[variant.kernel];
  std::vector<uint32_t> sizes = kernel.text.image.parameterBytes;
  std::vector<CubinParameter> expected;
  uint32_t offset = 0;
  auto put = [&](uint32_t bytes, uint32_t alignment) {
    // Alignment counts from constant memory, where parameters begin here.
    const uint32_t number = gpuOf(arch).architecture;
    const uint32_t begin = number < 90 ? 0x160 : number < 100 ? 0x210 : 0x380;
    const uint32_t at = offset + (alignment > 16 ? begin : 0);
    offset += (alignment - at % alignment) % alignment;
    expected.push_back({offset, bytes});
    offset += bytes;
  };
  for (uint32_t bytes : sizes)
    put(bytes, bytes == tensorMapBytes ? 64 : bytes);
  if (kernel.text.image.takesPart)
    put(12 * sizeof(uint32_t), alignof(uint32_t)); // an MgpuLaunch
  EXPECT_TRUE(inFile.parameters == expected) << [&] {
    std::string text;
    for (const std::vector<CubinParameter> *list :
         {&inFile.parameters, &std::as_const(expected)})
      for (const CubinParameter &each : *list)
        text += fmt::format("{}{}+{}", &each == list->data() ? "; " : ", ",
                            each.offset, each.bytes);
    return text;
  }();
  EXPECT_EQ(usage.registers, inFile.registers);
  const device::DeviceProfile &gpu = gpuOf(arch);
  // The driver's own is in the section on sm_90 and later (NVRTC 13.0).
  const uint32_t reserved = inFile.sharedBytes && gpu.architecture >= 90
                                ? gpu.reservedSharedBytesPerBlock
                                : 0;
  EXPECT_EQ(usage.sharedBytes + reserved, inFile.sharedBytes);
  // What a launch of the configuration has.
  const uint64_t threads = variant.config.block().volume(),
                 blocks = variant.config[P::MinBlocks];
  EXPECT_GT(usage.registers, 0u);
  EXPECT_LE(usage.registers, gpu.maxRegistersPerThread);
  EXPECT_LE(usage.registers * threads * blocks, gpu.registersPerMultiprocessor);
  const TwinConfig twin{variant.entry, kernel.text, kernel.space,
                        variant.config};
  EXPECT_LE(usage.sharedBytes + twin.dynamicSharedBytes(),
            gpu.maxSharedBytesPerBlock);
  const auto tunables = kernel.space.tunables();
  if (!tunables.empty() && tunables[0].name == "MGPU_DEPTH" &&
      !kernel.space.sharedIsDynamic) {
    EXPECT_EQ(usage.sharedBytes, kernel.space.sharedBytesOf(variant.config));
  }
  if (!tunables.empty() && tunables[0].name == "MGPU_STAGE") {
    const uint64_t most = kernel.space.sharedBytesOf(variant.config);
    EXPECT_EQ(usage.sharedBytes == 0, most == 0);
    EXPECT_LE(usage.sharedBytes, most);
  }
  if (variant.staysInRegisters) {
    EXPECT_EQ(usage.spillStoreBytes + usage.spillLoadBytes, 0u);
  }
  if (kernel.text.image.blob.find("__shared__") == std::string::npos) {
    EXPECT_EQ(usage.sharedBytes, 0u);
  }
}

} // namespace mgpu::kernels

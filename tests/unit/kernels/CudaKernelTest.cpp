// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Emitted CUDA C++ does what the host target does, bit for bit: it is compiled
// for the processor and both run on the same data; and NVRTC takes it in
// corners of its space for three architectures without a warning.
#include "CornerCheck.h"
#include "KernelCases.h"
#include "KernelRunner.h"

#include "pipeline/compiler/KernelBuild.h"
#include "tests/unit/compile/Nvrtc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace mgpu::kernels {
namespace {

using P = KernelParameter;

/// Everything is emitted and compiled once, for all tests.
class CudaKernels : public testing::Test {
protected:
  static void SetUpTestSuite() {
    cases = new std::vector<KernelCase>(operationCases());
    size_t numCorpora = cases->size();
    cases->insert(cases->end(), structuredCases().begin(),
                  structuredCases().end());
    cases->insert(cases->end(), matrixCases().begin(), matrixCases().end());
    twins = new CudaTwins;
    failures = new std::string;
    for (const KernelCase &each : *cases) {
      auto kernel = emitCudaText(
          each.text, {each.name, "", each.block, each.grid, 16,
                      std::vector<bool>(each.buffers.size(), true)});
      if (!kernel) {
        *failures += each.name + ": " + kernel.error().message + "\n";
        continue;
      }
      if (kernel->reshapable != each.reshapable)
        *failures += each.name + " reshapable? " + kernel->reason + "\n";
      auto space = kernelSpaceOf(specOf(each.text, each.block), each.grid,
                                 KernelTarget::Cuda);
      if (!space) {
        *failures += each.name + ": " + space.error().message + "\n";
        continue;
      }
      twins->add({each.name + "_same", *kernel, *space, space->defaults});
      std::vector<KernelConfig> corners = cornersOf(*space, 8);
      // Long, and all of one form.
      bool isCorpus = &each - cases->data() < ptrdiff_t(numCorpora);
      if (isCorpus) {
        std::erase_if(corners, [](const KernelConfig &config) {
          return config[P::Vector] == 1;
        });
        corners.resize(std::min<size_t>(corners.size(), 1));
      }
      // Many, and all alike in what a configuration changes.
      if (each.name.starts_with("matrix_"))
        corners.resize(std::min<size_t>(corners.size(), 1));
      for (size_t k = 0; k < corners.size(); ++k)
        twins->add(
            {each.name + "_" + std::to_string(k), *kernel, *space, corners[k]});
      // What a space does not offer is right all the same.
      KernelConfig odd = space->defaults;
      odd[P::Items] = 3;
      if (kernel->reshapable)
        odd[P::BlockX] = 1, odd[P::BlockY] = 3;
      twins->add({each.name + "_odd", *kernel, *space, odd});
    }
  }
  static void TearDownTestSuite() {
    delete cases;
    delete twins;
    delete failures;
  }
  static std::vector<KernelCase> *cases;
  static CudaTwins *twins;
  static std::string *failures;
};
std::vector<KernelCase> *CudaKernels::cases;
CudaTwins *CudaKernels::twins;
std::string *CudaKernels::failures;

TEST_F(CudaKernels, GiveTheBitsOfTheHostTwin) {
  ASSERT_EQ(*failures, "");
  auto compiled = twins->compile();
  ASSERT_TRUE(compiled) << compiled.error().message;
  for (const KernelCase &each : *cases) {
    auto host = LoadedKernel::fromText(each.text, each.block);
    ASSERT_TRUE(host) << each.name << ": " << host.error().message;
    std::vector<std::vector<std::byte>> initial = each.fill(7);
    auto arguments = [&](std::vector<std::vector<std::byte>> &buffers) {
      std::vector<uint64_t> words;
      for (auto &buffer : buffers)
        words.push_back(reinterpret_cast<uint64_t>(buffer.data()));
      words.insert(words.end(), each.scalars.begin(), each.scalars.end());
      return words;
    };
    auto expected = initial;
    (*host)->run(each.grid, arguments(expected));
    EXPECT_NE(expected, initial) << each.name << " does nothing";
    for (const TwinConfig &config : twins->configs) {
      if (config.kernel.name != each.name)
        continue;
      auto got = initial;
      SCOPED_TRACE(kernels::toText(config.config));
      twins->run(config.entry, each.grid, arguments(got));
      for (size_t k = 0; k < got.size(); ++k) {
        size_t width = bytesOf(each.buffers[k].type), wrong = 0, first = 0;
        for (size_t e = each.buffers[k].count; e-- > 0;)
          if (std::memcmp(&got[k][e * width], &expected[k][e * width], width)) {
            ++wrong;
            first = e;
          }
        EXPECT_EQ(wrong, 0u)
            << config.entry << " buffer " << k << ", first element " << first;
      }
    }
  }
}

TEST(CudaKernelCorners, Compile) {
  MGPU_OPEN_NVRTC(compiler);
  CornerCheck check;
  // All corners of what the first ones do are those of the corpus.
  for (const std::vector<KernelCase> &cases :
       {takesAllCorners() ? std::vector<KernelCase>() : operationCases(),
        structuredCases(), matrixCases()})
    for (const KernelCase &each : cases) {
      auto kernel = emitCudaText(
          each.text, {each.name, "", each.block, each.grid, 16,
                      std::vector<bool>(each.buffers.size(), true)});
      ASSERT_TRUE(kernel) << each.name << ": " << kernel.error().message;
      auto space = kernelSpaceOf(specOf(each.text, each.block), each.grid,
                                 KernelTarget::Cuda);
      ASSERT_TRUE(space) << each.name << ": " << space.error().message;
      check.add(*kernel, *space);
    }
  check.run(*compiler);
}

TEST(CudaEmitter, WhatCannotBeEmittedIsNamed) {
  struct {
    const char *arguments, *body, *message;
  } refused[] = {
      {"%x: memref<4xf32>, %y: memref<4xf32>",
       "memref.copy %x, %y : memref<4xf32> to memref<4xf32>", "memref.copy"},
      {"%x: memref<4xi7>, %i: index",
       "%v = memref.load %x[%i] : memref<4xi7>\n"
       "memref.store %v, %x[%i] : memref<4xi7>",
       "i7"},
      {"%x: memref<4xf128>", "", "f128"},
      {"%x: memref<4xvector<2xf32>>, %i: index",
       "%v = vector.load %x[%i] : memref<4xvector<2xf32>>, vector<2xf32>\n"
       "vector.store %v, %x[%i] : memref<4xvector<2xf32>>, vector<2xf32>",
       "in memory whose elements are vectors"},
      {"%v: i32", "gpu.printf \"%s\", %v : i32", "conversion '%s'"},
  };
  for (auto [arguments, body, message] : refused) {
    auto kernel =
        emitCudaText(module(arguments, body), {"k", "", {32}, {1, 1, 1}});
    ASSERT_FALSE(kernel) << body;
    EXPECT_EQ(kernel.error().kind, ErrorKind::Unsupported);
    EXPECT_NE(kernel.error().message.find(message), std::string::npos)
        << kernel.error().message;
    // At the operation, or at the function whose argument it is.
    EXPECT_TRUE(
        kernel.error().message.starts_with(kernel.error().location + ": "));
    EXPECT_TRUE(kernel.error().location.starts_with(
        std::string_view(kernel.error().message).find("argument of type") ==
                std::string_view::npos
            ? "-:2:"
            : "-:1:"))
        << kernel.error().message;
  }
  EXPECT_FALSE(emitCudaText(module("", ""), {"k", "", {2048}, {1, 1, 1}}));
}

/// Conditions within conditions are written for all parts of a thread and for
/// each, which must not double with every level.
TEST(CudaEmitter, DeepConditionsGrowLinearly) {
  auto sizeOf = [](int depth) {
    std::string body = "%zero = arith.constant 0.0 : f32\n"
                       "%i = gpu.global_id x\n";
    for (int k = 0; k < depth; ++k) {
      const std::string n = std::to_string(k);
      body += "%v" + n + " = memref.load %x[%i] : memref<64xf32>\n%c" + n +
              " = arith.cmpf olt, %v" + n + ", %zero : f32\nscf.if %c" + n +
              " {\n";
    }
    body += "memref.store %zero, %x[%i] : memref<64xf32>\n";
    for (int k = 0; k < depth; ++k)
      body += "}\n";
    auto kernel = emitCudaText(module("%x: memref<64xf32>", body),
                               {"k", "", {32}, {2, 1, 1}});
    EXPECT_TRUE(kernel) << kernel.error().message;
    return kernel ? std::ranges::count(kernel->image.blob, '\n') : 0;
  };
  const auto some = sizeOf(20), more = sizeOf(40), most = sizeOf(60);
  EXPECT_LT(std::abs((most - more) - (more - some)), 20);
}

TEST(CudaEmitter, PrintfReadsEachArgumentAtItsOwnWidth) {
  auto kernel = emitCudaText(
      module("%v: i64, %f: f32",
             "%t = gpu.thread_id x\n"
             "gpu.printf \"%d %ld %hhd %f\", %v, %t, %v, %f : i64, index, i64, "
             "f32"),
      {"k", "", {32}, {1, 1, 1}});
  ASSERT_TRUE(kernel) << kernel.error().message;
  EXPECT_NE(
      kernel->image.blob.find("printf(\"%lld %lld %lld %f\", (long long)"),
      std::string::npos)
      << kernel->image.blob;
}

} // namespace
} // namespace mgpu::kernels

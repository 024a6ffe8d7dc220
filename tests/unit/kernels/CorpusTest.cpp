// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The generated kernels: NVRTC takes each of them, in corners of its space, for
// three architectures without a warning, and run on the processor it gives the
// bits of the host target. Unless all corners are asked for, each operation on
// each type is in one shape, for one architecture, in one corner.
#include "Corpus.h"
#include "CornerCheck.h"
#include "KernelRunner.h"

#include "pipeline/compiler/KernelBuild.h"
#include "tests/unit/compile/Nvrtc.h"

#include <algorithm>

namespace mgpu::kernels {
namespace {

// Parts that ctest runs at the same time.
constexpr size_t numParts = 4;

class CorpusCorners : public testing::TestWithParam<size_t> {};

TEST_P(CorpusCorners, Compile) {
  MGPU_OPEN_NVRTC(compiler);
  CornerCheck check;
  const std::vector<std::string> archs{"sm_80", "sm_90", "sm_100"};
  const std::vector<CorpusKernel> corpus = corpusKernels();
  for (size_t k = 0; k < corpus.size(); ++k) {
    // Three shapes of an operation follow each other.
    const size_t operation = k / 3, shape = k % 3;
    if (operation % numParts != GetParam() ||
        (!takesAllCorners() && operation / numParts % 3 != shape))
      continue;
    const CorpusKernel &each = corpus[k];
    auto kernel =
        emitCudaText(each.text, {each.name, "", each.block, each.grid, 16,
                                 std::vector<bool>(each.buffers.size(), true)});
    ASSERT_TRUE(kernel) << each.name << ": " << kernel.error().message << "\n"
                        << each.text;
    auto space = kernelSpaceOf(specOf(each.text, each.block), each.grid,
                               KernelTarget::Cuda);
    ASSERT_TRUE(space) << each.name << ": " << space.error().message;
    check.add(*kernel, *space, 1,
              takesAllCorners()
                  ? archs
                  : std::vector{archs[operation / (3 * numParts) % 3]});
  }
  check.run(*compiler);
}

TEST_P(CorpusCorners, GiveTheBitsOfTheHostTwin) {
  CudaTwins twins;
  std::vector<CorpusKernel> taken;
  const std::vector<CorpusKernel> corpus = corpusKernels();
  for (size_t k = 0; k < corpus.size(); ++k) {
    const size_t operation = k / 3, shape = k % 3;
    // The shape that is compiled for GPUs, where it is longer than a thread.
    if (operation % numParts != GetParam() ||
        (!takesAllCorners() &&
         std::max<size_t>(operation / numParts % 3, 1) != shape))
      continue;
    const CorpusKernel &each = corpus[k];
    auto kernel =
        emitCudaText(each.text, {each.name, "", each.block, each.grid, 16,
                                 std::vector<bool>(each.buffers.size(), true)});
    ASSERT_TRUE(kernel) << each.name << ": " << kernel.error().message << "\n"
                        << each.text;
    auto space = kernelSpaceOf(specOf(each.text, each.block), each.grid,
                               KernelTarget::Cuda);
    ASSERT_TRUE(space) << each.name << ": " << space.error().message;
    const std::vector<KernelConfig> corners =
        cornersOf(*space, takesAllCorners() ? 3 : 1);
    ASSERT_FALSE(corners.empty()) << each.name;
    for (const KernelConfig &corner : corners)
      twins.add({"e" + std::to_string(twins.configs.size()), *kernel, *space,
                 corner});
    taken.push_back(each);
  }
  auto compiled = twins.compile();
  ASSERT_TRUE(compiled) << compiled.error().message;
  auto twin = twins.configs.begin();
  for (const CorpusKernel &each : taken) {
    auto host = LoadedKernel::fromText(each.text, each.block);
    if (!host) {
      ADD_FAILURE() << each.name << ": " << host.error().message << "\n"
                    << each.text;
      while (twin != twins.configs.end() && twin->kernel.name == each.name)
        ++twin;
      continue;
    }
    const std::vector<std::vector<std::byte>> initial = each.fill(7);
    auto expected = initial;
    (*host)->run(each.grid, args(expected));
    // A single bit is as likely as not what it was.
    if (std::any_of(each.buffers.begin(), each.buffers.end(),
                    [](const auto &buffer) {
                      return buffer.type != "i1" || buffer.count > 1;
                    }))
      EXPECT_NE(expected, initial) << each.name << " does nothing";
    for (; twin != twins.configs.end() && twin->kernel.name == each.name;
         ++twin) {
      auto got = initial;
      twins.run(twin->entry, each.grid, args(got));
      for (size_t k = 0; k < got.size(); ++k) {
        const std::string &type = each.buffers[k].type;
        const size_t width = bytesOf(type);
        size_t wrong = 0, first = 0;
        for (size_t e = each.buffers[k].count; e-- > 0;)
          if (!sameElement(type, &got[k][e * width], &expected[k][e * width])) {
            ++wrong;
            first = e;
          }
        EXPECT_EQ(wrong, 0u) << each.name << ", buffer " << k << " of " << type
                             << ", first element " << first << ": "
                             << toText(twin->config) << "\n"
                             << each.text;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, CorpusCorners,
                         testing::Range(size_t(0), numParts));

} // namespace
} // namespace mgpu::kernels

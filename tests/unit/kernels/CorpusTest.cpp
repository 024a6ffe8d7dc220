// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The generated kernels: NVRTC takes each of them, in corners of its space, for
// three architectures without a warning, and run on the processor, or as PTX,
// it gives the bits of the host target. Unless all corners are asked for, each
// operation on each type is in one shape, for one architecture, in one corner.
#include "Corpus.h"
#include "CornerCheck.h"
#include "KernelRunner.h"
#include "PtxTwin.h"

#include "kernels/compile/NvrtcLibrary.h"
#include "pipeline/compiler/KernelBuild.h"
#include "tests/unit/compile/Nvrtc.h"

#include <algorithm>
#include <cmath>
#include <cstring>

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

/// A part of the corpus, and its configurations one kernel after the other.
struct Taken {
  std::vector<CorpusKernel> kernels;
  std::vector<TwinConfig> configs;
};

void take(size_t part, Taken &taken) {
  const std::vector<CorpusKernel> corpus = corpusKernels();
  for (size_t k = 0; k < corpus.size(); ++k) {
    const size_t operation = k / 3, shape = k % 3;
    // The shape that is compiled for GPUs, where it is longer than a thread.
    if (operation % numParts != part ||
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
      taken.configs.push_back({"e" + std::to_string(taken.configs.size()),
                               *kernel, *space, corner});
    taken.kernels.push_back(each);
  }
}

using Buffers = std::vector<std::vector<std::byte>>;

/// Within 16 units in the last place, or one of 1, of functions that CUDA has
/// its own of.
bool isNear(const std::string &type, const std::byte *a, const std::byte *b) {
  auto near = [&]<typename T>(T, double unit) {
    T x, y;
    std::memcpy(&x, a, sizeof x);
    std::memcpy(&y, b, sizeof y);
    return std::abs(double(x) - double(y)) <=
           unit * (16 * std::abs(double(y)) + 1);
  };
  return type == "f32"   ? near(float(), 0x1p-23)
         : type == "f64" ? near(double(), 0x1p-52)
                         : false;
}

/// `isClose`: functions may differ from the host's.
void expectSame(const CorpusKernel &kernel, const TwinConfig &twin,
                const Buffers &got, const Buffers &expected,
                bool isClose = false) {
  for (size_t k = 0; k < got.size(); ++k) {
    const std::string &type = kernel.buffers[k].type;
    const size_t width = bytesOf(type);
    size_t wrong = 0, first = 0;
    for (size_t e = kernel.buffers[k].count; e-- > 0;)
      if (!sameElement(type, &got[k][e * width], &expected[k][e * width]) &&
          !(isClose &&
            isNear(type, &got[k][e * width], &expected[k][e * width]))) {
        ++wrong;
        first = e;
      }
    EXPECT_EQ(wrong, 0u) << kernel.name << ", buffer " << k << " of " << type
                         << ", first element " << first << ": "
                         << toText(twin.config) << "\n"
                         << kernel.text;
  }
}

/// `run` launches a configuration on some buffers.
template <typename Run>
void compareWithHost(const Taken &taken, Run run, bool isPtx = false) {
  auto twin = taken.configs.begin();
  for (const CorpusKernel &each : taken.kernels) {
    auto host = LoadedKernel::fromText(each.text, each.block);
    ASSERT_TRUE(host) << each.name << ": " << host.error().message << "\n"
                      << each.text;
    const Buffers initial = each.fill(7);
    Buffers expected = initial;
    (*host)->run(each.grid, args(expected));
    // A single bit is as likely as not what it was.
    if (std::any_of(each.buffers.begin(), each.buffers.end(),
                    [](const auto &buffer) {
                      return buffer.type != "i1" || buffer.count > 1;
                    }))
      EXPECT_NE(expected, initial) << each.name << " does nothing";
    for (; twin != taken.configs.end() && twin->kernel.name == each.name;
         ++twin) {
      Buffers got = initial;
      run(each, *twin, got);
      const bool isFunction = each.name.find("math") != std::string::npos ||
                              each.name.starts_with("sincos");
      expectSame(each, *twin, got, expected, isPtx && isFunction);
    }
  }
}

TEST_P(CorpusCorners, GiveTheBitsOfTheHostTwin) {
  Taken taken;
  ASSERT_NO_FATAL_FAILURE(take(GetParam(), taken));
  CudaTwins twins;
  for (const TwinConfig &each : taken.configs)
    twins.add(each);
  auto compiled = twins.compile();
  ASSERT_TRUE(compiled) << compiled.error().message;
  compareWithHost(taken, [&](const CorpusKernel &kernel, const TwinConfig &twin,
                             Buffers &got) {
    twins.run(twin.entry, kernel.grid, args(got));
  });
}

/// For an architecture of its own in each part.
TEST_P(CorpusCorners, GiveTheHostsBitsAsPtx) {
  auto nvrtc = NvrtcLibrary::open("");
  if (!nvrtc)
    GTEST_SKIP() << nvrtc.error().message;
  Taken taken;
  ASSERT_NO_FATAL_FAILURE(take(GetParam(), taken));
  PtxTwins twins;
  for (const TwinConfig &each : taken.configs)
    twins.add(each);
  const char *const archs[] = {"sm_80", "sm_90", "sm_90a", "sm_100"};
  auto compiled = twins.compile(nvrtc->get(), archs[GetParam() % 4]);
  ASSERT_TRUE(compiled) << compiled.error().message;
  compareWithHost(
      taken,
      [&](const CorpusKernel &kernel, const TwinConfig &twin, Buffers &got) {
        std::vector<ptx::Region> regions;
        for (std::vector<std::byte> &bytes : got) {
          ptx::Region region;
          region.at = bytes.data();
          region.bytes = bytes.size();
          regions.push_back(region);
        }
        auto ran = twins.run(twin.entry, kernel.grid, args(got), regions);
        EXPECT_TRUE(ran) << kernel.name << ": " << ran.error().message << "\n"
                         << kernel.text;
      },
      /*isPtx=*/true);
}

INSTANTIATE_TEST_SUITE_P(Parts, CorpusCorners,
                         testing::Range(size_t(0), numParts));

} // namespace
} // namespace mgpu::kernels

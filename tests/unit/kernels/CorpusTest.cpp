// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The generated kernels: NVRTC takes each of them, in corners of its space, for
// three architectures without a warning. Unless all corners are asked for, each
// operation on each type is in one shape, for one architecture, in one corner;
// CudaKernelTest.cpp has all operations for each architecture.
#include "Corpus.h"
#include "CornerCheck.h"
#include "KernelRunner.h"

#include "kernels/emit/KernelBuild.h"
#include "tests/unit/compile/Nvrtc.h"

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
        emitCudaText(each.text, {each.name, "", each.block, each.grid});
    ASSERT_TRUE(kernel) << each.name << ": " << kernel.error().message << "\n"
                        << each.text;
    auto space = kernelSpaceOf(specOf(each.text, each.block), each.grid,
                               planner::KernelTarget::Cuda);
    ASSERT_TRUE(space) << each.name << ": " << space.error().message;
    check.add(*kernel, *space, 1,
              takesAllCorners()
                  ? archs
                  : std::vector{archs[operation / (3 * numParts) % 3]});
  }
  check.run(*compiler);
}

INSTANTIATE_TEST_SUITE_P(Parts, CorpusCorners,
                         testing::Range(size_t(0), numParts));

} // namespace
} // namespace mgpu::kernels

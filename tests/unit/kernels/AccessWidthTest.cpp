// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How wide the accesses of neighbouring threads may be follows from the text
// alone: nothing is asked when the kernel runs.
#include "CudaTwin.h"
#include "KernelCases.h"
#include "KernelRunner.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mgpu::kernels {
namespace {

/// The text of a kernel that loads %x, of 64 x 1000 elements unless `type` says
/// otherwise, at [%r, %c], and stores to %y at the thread's index.
std::string textOf(const std::string &place,
                   const std::string &type = "memref<64x1000xf32>",
                   const std::string &load = "memref.load %x[%r, %c]") {
  auto kernel =
      emitCudaText(module("%x: " + type + ", %y: memref<1024xf32>",
                          "%c0 = arith.constant 0 : index\n"
                          "%c1 = arith.constant 1 : index\n"
                          "%c2 = arith.constant 2 : index\n"
                          "%c4 = arith.constant 4 : index\n"
                          "%c12 = arith.constant 12 : index\n"
                          "%c64 = arith.constant 64 : index\n"
                          "%b = gpu.block_id x\n"
                          "%t = gpu.thread_id x\n"
                          "%first = arith.muli %b, %c64 : index\n"
                          "%i = arith.addi %first, %t : index\n" +
                              place + "\n%v = " + load + " : " + type +
                              "\nmemref.store %v, %y[%i] : memref<1024xf32>"),
                   {"k", "", {64}, {8}, 16, {true, true}});
  EXPECT_TRUE(kernel) << kernel.error().message;
  return kernel ? kernel->image.blob : "";
}

/// The divisor of the place of the load.
std::string divisorOf(const std::string &text) {
  const std::string call = " loadParts<";
  const size_t at = text.find(call);
  return at == std::string::npos
             ? "none"
             : text.substr(at + call.size(),
                           text.find('>', at) - at - call.size());
}

TEST(AccessWidth, FollowsFromTheIndices) {
  struct Case {
    const char *place, *divisor;
  };
  for (auto [place, divisor] : {
           Case{"%r = arith.addi %c0, %c0 : index\n"
                "%c = arith.addi %i, %c0 : index",
                "16"},
           // Rows are 1000 elements long, and 8 divides that.
           Case{"%r = arith.addi %b, %c0 : index\n"
                "%c = arith.addi %i, %c0 : index",
                "8"},
           Case{"%r = arith.addi %c0, %c0 : index\n"
                "%c = arith.addi %i, %c1 : index",
                "1"},
           Case{"%r = arith.addi %c0, %c0 : index\n"
                "%c = arith.addi %i, %c2 : index",
                "2"},
           Case{"%r = arith.addi %c0, %c0 : index\n"
                "%c = arith.subi %i, %c12 : index",
                "4"},
           Case{"%r = arith.addi %c0, %c0 : index\n"
                "%four = arith.muli %b, %c4 : index\n"
                "%c = arith.addi %t, %four : index",
                "4"},
           Case{"%r = arith.addi %c0, %c0 : index\n"
                "%c = arith.addi %t, %b : index",
                "1"},
       })
    EXPECT_EQ(divisorOf(textOf(place)), divisor) << place;
}

TEST(AccessWidth, FollowsFromTheBuffersLayout) {
  const std::string place = "%r = arith.addi %b, %c0 : index\n"
                            "%c = arith.addi %t, %c0 : index";
  EXPECT_EQ(divisorOf(textOf(place, "memref<64x1024xf32>")), "16");
  EXPECT_EQ(divisorOf(textOf(place, "memref<64x999xf32>")), "1");
  EXPECT_EQ(divisorOf(textOf(place,
                             "memref<64x64xf32, strided<[68, 1], offset: 4>>")),
            "4");
  EXPECT_EQ(divisorOf(textOf(place,
                             "memref<64x64xf32, strided<[64, 1], offset: 3>>")),
            "1");
  // Not neighbours in memory.
  EXPECT_EQ(divisorOf(textOf(place, "memref<64x64xf32, strided<[128, 2]>>")),
            "none");
}

TEST(AccessWidth, IsBoundByTheAlignmentOfBuffers) {
  const std::string text = textOf("%r = arith.addi %c0, %c0 : index\n"
                                  "%c = arith.addi %i, %c0 : index");
  EXPECT_NE(text.find("#define MGPU_ALIGN 16\n"), std::string::npos);
  auto kernel =
      emitCudaText(module("%y: memref<1024xf32>",
                          "%i = gpu.thread_id x\n"
                          "%v = memref.load %y[%i] : memref<1024xf32>\n"
                          "memref.store %v, %y[%i] : memref<1024xf32>"),
                   {"k", "", {64}, {8}, 4});
  ASSERT_TRUE(kernel) << kernel.error().message;
  EXPECT_NE(kernel->image.blob.find("#define MGPU_ALIGN 4\n"),
            std::string::npos);
  EXPECT_EQ(kernel->image.argumentAlignment, (std::vector<uint32_t>{4}));
}

/// What is only read, and nothing in the launch writes, needs no order with
/// stores to other buffers.
TEST(AccessWidth, OnlyBuffersThatNoStoreChangesAreRestrict) {
  const std::string body = "%i = gpu.thread_id x\n"
                           "%v = memref.load %x[%i] : memref<64xf32>\n"
                           "memref.store %v, %y[%i] : memref<64xf32>";
  for (bool isUnwritten : {true, false}) {
    auto kernel =
        emitCudaText(module("%x: memref<64xf32>, %y: memref<64xf32>", body),
                     {"k", "", {64}, {1}, 16, {isUnwritten, true}});
    ASSERT_TRUE(kernel) << kernel.error().message;
    EXPECT_NE(kernel->image.blob.find(isUnwritten
                                          ? "const float *MGPU_UNWRITTEN arg"
                                          : "const float *arg"),
              std::string::npos)
        << kernel->image.blob;
    EXPECT_EQ(kernel->image.blob.find("__restrict__ arg_1"), std::string::npos);
  }
}

/// In registers are elements that no other thread may write.
TEST(AccessWidth, ElementsAreKeptWhereTheyAreTheThreadsOwn) {
  const KernelCase &kept = kernelCase("strips_again");
  auto arrays = [&](std::vector<bool> unwritten, Dim3 grid) {
    auto kernel = emitCudaText(
        kept.text, {"k", "", kept.block, grid, 16, std::move(unwritten)});
    EXPECT_TRUE(kernel) << kernel.error().message;
    size_t count = 0;
    const std::string text = kernel->image.blob;
    for (size_t at = 0; (at = text.find("float kept", at)) != std::string::npos;
         ++at)
      ++count;
    return count / 2; // each in two forms
  };
  EXPECT_EQ(arrays({true, true}, kept.grid), 2u);
  // What is read may be what is written.
  EXPECT_EQ(arrays({false, true}, kept.grid), 0u);
  // Blocks above each other have the same elements.
  EXPECT_EQ(arrays({true, true}, {6, 2, 1}), 1u);
}

} // namespace
} // namespace mgpu::kernels

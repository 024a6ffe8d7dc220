// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// gpu.printf in kernels: what is printed, and what is refused.
#include "KernelRunner.h"

#include <gtest/gtest.h>

namespace mgpu::kernels {
namespace {

TEST(HostPrintf, InThreadOrder) {
  auto kernel = load(module("", R"(
    %t = gpu.thread_id x
    %c2 = arith.constant 2.5 : f32
    gpu.printf "thread %lld of %f\n", %t, %c2 : index, f32)"),
                     {3});
  ASSERT_TRUE(kernel);
  testing::internal::CaptureStdout();
  kernel->run({1}, {});
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "thread 0 of 2.500000\nthread 1 of 2.500000\n"
            "thread 2 of 2.500000\n");
}

std::string printed(const std::string &format, const std::string &constants,
                    const std::string &arguments) {
  auto kernel = load(
      module("", constants + "\ngpu.printf \"" + format + "\"" + arguments),
      {1});
  if (!kernel)
    return "";
  testing::internal::CaptureStdout();
  kernel->run({1}, {});
  return testing::internal::GetCapturedStdout();
}

TEST(HostPrintf, EachArgumentIsReadAtItsOwnWidth) {
  const char *const values = R"(
    %n = arith.constant -5 : i32
    %w = arith.constant 9000000000 : i64
    %k = arith.constant 7000000000 : index
    %b = arith.constant -3 : i8
    %yes = arith.constant true
    %f = arith.constant 0.1 : f32
    %d = arith.constant 0.1 : f64
    %h = arith.constant 1.5 : f16
    %g = arith.constant -2.5 : bf16)";
  EXPECT_EQ(printed("%d %ld %lld|", values, ", %n, %w, %w : i32, i64, i64"),
            "-5 9000000000 9000000000|");
  // The length of the argument counts, not that of the format.
  EXPECT_EQ(printed("%ld %d %d %hhd|", values,
                    ", %n, %w, %k, %n : i32, i64, index, i32"),
            "-5 9000000000 7000000000 -5|");
  EXPECT_EQ(printed("%d %d %u|", values, ", %b, %yes, %n : i8, i1, i32"),
            "-3 1 4294967291|");
  EXPECT_EQ(printed("%.9f %.17g|", values, ", %f, %d : f32, f64"),
            "0.100000001 0.10000000000000001|");
  EXPECT_EQ(printed("%f %+08.2f %e|", values, ", %h, %g, %d : f16, bf16, f64"),
            "1.500000 -0002.50 1.000000e-01|");
  EXPECT_EQ(printed("%5d|%-5d|%05d|%x %#llX %c%%|", values,
                    ", %n, %n, %n, %n, %w, %b : i32, i32, i32, i32, i64, i8"),
            "   -5|-5   |-0005|fffffffb 0X218711A00 \xfd%|");
  EXPECT_EQ(printed("no argument\\n", values, ""), "no argument\n");
}

TEST(HostPrintf, FormatsThatWouldReadAmissAreRefused) {
  struct {
    const char *format, *arguments, *message;
  } const cases[] = {
      {"%s", ", %n : i32", "conversion '%s', which kernels cannot print"},
      {"%n", ", %n : i32", "conversion '%n', which kernels cannot print"},
      {"%*d", ", %n, %n : i32, i32", "conversion '%*'"},
      {"%d", "", "more conversions than its 0 arguments"},
      {"%d", ", %n, %n : i32, i32", "2 arguments, but a format with 1"},
      {"%f", ", %n : i32", "prints argument 0, of type 'i32', by '%f'"},
      {"%d", ", %f : f32", "prints argument 0, of type 'f32', by '%d'"},
      {"%c", ", %k : index", "prints argument 0, of type 'index', by '%c'"},
      {"100%", "", "ends inside a conversion"},
      {"%-l", ", %n : i32", "ends inside a conversion"},
  };
  for (auto [format, arguments, message] : cases) {
    auto kernel = LoadedKernel::fromText(
        module("", std::string("%n = arith.constant 1 : i32\n"
                               "%k = arith.constant 1 : index\n"
                               "%f = arith.constant 1.0 : f32\ngpu.printf \"") +
                       format + "\"" + arguments),
        {1});
    ASSERT_FALSE(kernel) << format;
    EXPECT_EQ(kernel.error().kind, std::string_view(message).find(
                                       "conversion '") != std::string_view::npos
                                       ? ErrorKind::Unsupported
                                       : ErrorKind::Invalid)
        << kernel.error().message;
    EXPECT_NE(kernel.error().message.find(message), std::string::npos)
        << format << ": " << kernel.error().message;
  }
}

} // namespace
} // namespace mgpu::kernels

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/ArgumentValue.h"

#include "TestFiles.h"

#include <cmath>

using namespace mgpu;
using namespace mgpu::test;

namespace {

using Shape = std::vector<int64_t>;

Array load(const std::string &spec, ElementType type, const Shape &shape) {
  Result<Array> array = loadArgument(spec, type, shape);
  EXPECT_TRUE(array) << array.error().message;
  return array.value_or(Array{});
}

Error errorOf(const std::string &spec, ElementType type, const Shape &shape) {
  Result<Array> array = loadArgument(spec, type, shape);
  EXPECT_FALSE(array) << spec;
  return array ? Error{ErrorKind::Internal, ""} : array.error();
}

TEST(ArgumentValue, Numbers) {
  EXPECT_EQ(valuesOf<float>(load("2.5", ElementType::F32, {2})),
            (std::vector<float>{2.5, 2.5}));
  EXPECT_EQ(valuesOf<int64_t>(load("-7", ElementType::Index, {}))[0], -7);
  EXPECT_EQ(load("true", ElementType::I1, {}).bytes[0], std::byte{1});
  EXPECT_EQ(loadNumber(load("1e-3", ElementType::BF16, {}), 0),
            0.00099945068359375);
  EXPECT_EQ(errorOf("2.5", ElementType::I32, {}).message,
            "'2.5' is not a number of type i32");
}

TEST(ArgumentValue, NumbersBeyondTheirType) {
  EXPECT_EQ(errorOf("1e400", ElementType::F32, {}).message,
            "'1e400' is too large for f32");
  EXPECT_EQ(errorOf("-1e400", ElementType::F64, {}).message,
            "'-1e400' is too large for f64");
  EXPECT_EQ(errorOf("1e300", ElementType::F32, {}).message,
            "'1e300' is too large for f32");
  EXPECT_EQ(errorOf("70000", ElementType::F16, {}).message,
            "'70000' is too large for f16");
  EXPECT_EQ(errorOf("1e10", ElementType::F8E4M3FN, {}).message,
            "'1e10' is too large for f8E4M3FN");
  EXPECT_EQ(loadNumber(load("inf", ElementType::F32, {}), 0), INFINITY);
  EXPECT_EQ(loadNumber(load("65504", ElementType::F16, {}), 0), 65504);
  // Too small is a rounding to zero.
  for (const char *tiny :
       {"1e-400", "-0.00001e-395", "12345e-99999999999999999999", "0e999"})
    EXPECT_EQ(loadNumber(load(tiny, ElementType::F64, {}), 0), 0) << tiny;
  EXPECT_EQ(loadNumber(load("1e-60", ElementType::F32, {}), 0), 0);
  EXPECT_EQ(
      loadNumber(load("0." + std::string(400, '0') + "1", ElementType::F64, {}),
                 0),
      0);
  EXPECT_EQ(errorOf("99999999999999999999", ElementType::I64, {}).message,
            "'99999999999999999999' is not a number of type i64");
  EXPECT_EQ(valuesOf<int32_t>(load("010", ElementType::I32, {}))[0], 10);
}

TEST(ArgumentValue, NamesItsFile) {
  EXPECT_EQ(argumentFile("a/b.npy"), "a/b.npy");
  EXPECT_EQ(argumentFile("a.csv.gz:0-3@1"), "a.csv.gz");
  EXPECT_EQ(argumentFile("w.safetensors:x.y"), "w.safetensors");
  EXPECT_EQ(argumentFile("raw:f32:2x3:f:g.bin"), "f:g.bin");
  for (const char *none : {"2", "zeros", "iota", "random:1", "raw:f32"})
    EXPECT_EQ(argumentFile(none), "") << none;
}

TEST(ArgumentValue, ReadsPipesNoFurtherThanTheArgumentGoes) {
  Pipe exact(std::string(8, '\0'), 1);
  EXPECT_EQ(
      valuesOf<float>(load("raw:f32:2:" + exact.path(), ElementType::F32, {2})),
      (std::vector<float>{0, 0}));
  // 16 MiB stand for a pipe without an end.
  Pipe raw(std::string(4096, 'x'), 4096);
  EXPECT_EQ(
      errorOf("raw:f32:2:" + raw.path(), ElementType::F32, {2}).message,
      "'" + raw.path() +
          "' goes on after 8 bytes, where it should have ended: save what is "
          "wanted in a file first");
  Pipe npy(std::string(4096, 'x'), 4096);
  std::string link = ::testing::TempDir() + "mgpu-argument-pipe.npy";
  std::filesystem::remove(link);
  std::filesystem::create_symlink(npy.path(), link);
  std::string message = errorOf(link, ElementType::F32, {2}).message;
  std::filesystem::remove(link);
  EXPECT_EQ(message, "'" + link +
                         "' goes on after 1048584 bytes, where it should have "
                         "ended: save what is wanted in a file first");
}

TEST(ArgumentValue, SplitMix64ReferenceVector) {
  // The first outputs for seed 1234567 of Vigna's splitmix64.c.
  EXPECT_EQ(randomBits(1234567, 0), 6457827717110365317u);
  EXPECT_EQ(randomBits(1234567, 1), 3203168211198807973u);
  EXPECT_EQ(randomBits(1234567, 2), 9817491932198370423u);
}

TEST(ArgumentValue, RandomIsUniformAndRepeatable) {
  for (ElementType type :
       {ElementType::F8E4M3FN, ElementType::F8E5M2, ElementType::F16,
        ElementType::BF16, ElementType::F32, ElementType::F64}) {
    Array array = load("random:42", type, {100, 100});
    double sum = 0;
    for (int64_t i = 0; i < 10000; ++i) {
      double value = loadNumber(array, i);
      ASSERT_GE(value, 0);
      ASSERT_LT(value, 1);
      sum += value;
    }
    // The mean of k 2^-p is (1 - 2^-p) / 2, at least 0.4375 for p = 3.
    EXPECT_GT(sum / 10000, 0.42);
    EXPECT_LT(sum / 10000, 0.51);
    EXPECT_EQ(array, load("random:42", type, {100, 100}));
    EXPECT_NE(array.bytes, load("random:43", type, {100, 100}).bytes);
  }
  std::vector<float> few =
      valuesOf<float>(load("random:1234567", ElementType::F32, {2}));
  EXPECT_EQ(few[0], float(6457827717110365317u >> 40) * 0x1p-24f);
  EXPECT_EQ(valuesOf<int32_t>(load("random:1234567", ElementType::I32, {1}))[0],
            int32_t(6457827717110365317u >> 56));
  EXPECT_EQ(errorOf("random:x", ElementType::F32, {1}).kind, ErrorKind::Usage);
}

TEST(ArgumentValue, IotaAndZeros) {
  EXPECT_EQ(valuesOf<int16_t>(load("iota", ElementType::I16, {2, 2})),
            (std::vector<int16_t>{0, 1, 2, 3}));
  EXPECT_EQ(valuesOf<double>(load("zeros", ElementType::F64, {2})),
            (std::vector<double>{0, 0}));
  EXPECT_EQ(errorOf("iota", ElementType::I8, {200}).message,
            "iota reaches 128, which i8 cannot hold");
  EXPECT_EQ(errorOf("zeros", ElementType::F32, {-1}).kind, ErrorKind::Usage);
}

TEST(ArgumentValue, UnknownFormsAreUsage) {
  for (const char *spec :
       {"", "weights", "x.safetensors", "x.csv:", "x.csv@", "x.csv:1@",
        "raw:f32:2", "raw:f31:2:f", "raw:f32:2x:f", "raw:f32:2:"})
    EXPECT_EQ(errorOf(spec, ElementType::F32, {2}).kind, ErrorKind::Usage)
        << spec;
}

class ArgumentFiles : public FilesTest {};

TEST_F(ArgumentFiles, CsvSelectsAndReshapes) {
  std::string path = write("t.csv", "1,2,3\n4,5,6\n7,8,9\n");
  EXPECT_EQ(valuesOf<float>(load(path + ":0-1@1-2", ElementType::F32, {2, 2})),
            (std::vector<float>{4, 5, 7, 8}));
  EXPECT_EQ(load(path + ":2", ElementType::I32, {3}).shape, Shape{3});
  EXPECT_EQ(load(path + ":2", ElementType::I32, {3, 1}).shape, (Shape{3, 1}));
  EXPECT_EQ(load(path + "@1", ElementType::F32, {3}).shape, Shape{3});
  EXPECT_EQ(load(path + ":0@0", ElementType::F32, {}).shape, Shape{});
  EXPECT_EQ(load(path, ElementType::F32, {-1, 3}).shape, (Shape{3, 3}));
  EXPECT_EQ(errorOf(path, ElementType::F32, {2, 3}).message,
            "'" + path + "' is 3x3xf32, the argument is 2x3xf32");
}

TEST_F(ArgumentFiles, TypedFilesMustMatch) {
  std::string path = (folder / "a.npy").string();
  Array array{ElementType::I64, {2}, std::vector<std::byte>(16)};
  ASSERT_TRUE(writeNpy(path, array));
  EXPECT_EQ(load(path, ElementType::I64, {2}), array);
  EXPECT_EQ(load(path, ElementType::Index, {2}).elementType,
            ElementType::Index);
  EXPECT_EQ(errorOf(path, ElementType::F64, {2}).message,
            "'" + path +
                "' is 2xi64, the argument is 2xf64; save it after "
                ".astype(numpy.float64)");
  std::string raw = write("b.bin", std::string(12, '\0'));
  EXPECT_EQ(load("raw:bf16:2x3:" + raw, ElementType::BF16, {2, 3}).shape,
            (Shape{2, 3}));
  EXPECT_EQ(errorOf("raw:bf16:2x4:" + raw, ElementType::BF16, {2, 4}).message,
            "'" + raw + "' has 12 bytes, 2x4xbf16 needs 16");
  std::string header =
      R"({"w":{"dtype":"F16","shape":[],"data_offsets":[0,2]}})";
  std::string st = std::string(1, char(header.size())) + std::string(7, '\0') +
                   header + std::string(2, '\0');
  EXPECT_EQ(load(write("w.safetensors", st) + ":w", ElementType::F16, {}).shape,
            Shape{});
}

} // namespace

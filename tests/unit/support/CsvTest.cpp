// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Csv.h"

#include "TestFiles.h"
#include "support/FileIO.h"

#include <cmath>
#include <zlib.h>

using namespace mgpu;
using namespace mgpu::test;

namespace {

IndexRanges ranges(std::string_view text) {
  Result<IndexRanges> result = parseIndexRanges(text);
  EXPECT_TRUE(result);
  return result.value_or(IndexRanges{});
}

std::string messageOf(std::string_view text, ElementType type,
                      const IndexRanges &columns = {},
                      const IndexRanges &rows = {}) {
  Result<Array> array = parseCsv(text, type, columns, rows, "t.csv");
  EXPECT_FALSE(array);
  return array ? "" : array.error().message;
}

std::string gzip(std::string_view text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, 0), Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  std::string in(text);
  stream.next_in = reinterpret_cast<Bytef *>(in.data());
  stream.avail_in = uInt(in.size());
  stream.next_out = reinterpret_cast<Bytef *>(out.data());
  stream.avail_out = uInt(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(IndexRanges, Parses) {
  using Pairs = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(ranges("0-63").ranges, (Pairs{{0, 63}}));
  EXPECT_EQ(ranges("64").ranges, (Pairs{{64, 64}}));
  EXPECT_EQ(ranges("0,2,5-7").ranges, (Pairs{{0, 0}, {2, 2}, {5, 7}}));
  for (const char *bad : {"", "-1", "3-", "5-2", "1,", ",1", "a", "1-2-3", "1 ",
                          "99999999999999999999"}) {
    Result<IndexRanges> result = parseIndexRanges(bad);
    ASSERT_FALSE(result) << bad;
    EXPECT_EQ(result.error().kind, ErrorKind::Usage);
  }
}

TEST(Csv, SelectsColumnsAndRows) {
  std::string_view text = "a,b,c\r\n1, 2 ,\"3\"\n\n4,5,6\n7,8,x\n";
  Result<Array> array =
      parseCsv(text, ElementType::F32, ranges("2,0"), ranges("0-1"), "t.csv");
  ASSERT_TRUE(array) << array.error().message;
  EXPECT_EQ(array->shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(valuesOf<float>(*array), (std::vector<float>{3, 1, 6, 4}));
  // The column that is not a number is only an error where it is selected.
  EXPECT_TRUE(parseCsv(text, ElementType::F32, ranges("0-1"), {}, "t.csv"));
  EXPECT_EQ(messageOf(text, ElementType::F32),
            "'t.csv' line 5 column 2: 'x' is not a number of type f32");
}

TEST(Csv, WhatOverflowsIsNoHeader) {
  EXPECT_EQ(messageOf("1e999\n2\n", ElementType::F64),
            "'t.csv' line 1 column 0: '1e999' is too large for f64");
  EXPECT_EQ(messageOf("1e39\n2\n", ElementType::F32),
            "'t.csv' line 1 column 0: '1e39' is too large for f32");
  Result<Array> flags =
      parseCsv("true\nfalse\n", ElementType::I1, {}, {}, "t.csv");
  ASSERT_TRUE(flags) << flags.error().message;
  EXPECT_EQ(flags->shape[0], 2);
}

TEST(Csv, ConvertsEachTypeOnce) {
  // 2^53 + 1 and a decimal that rounds differently through double to float.
  std::string_view text = "9007199254740993";
  Result<Array> wide = parseCsv(text, ElementType::I64, {}, {}, "t.csv");
  ASSERT_TRUE(wide);
  EXPECT_EQ(valuesOf<int64_t>(*wide)[0], 9007199254740993);
  std::string_view halfway = "1.00000005960464477540";
  Result<Array> single = parseCsv(halfway, ElementType::F32, {}, {}, "t.csv");
  ASSERT_TRUE(single);
  EXPECT_EQ(valuesOf<float>(*single)[0], std::nextafter(1.0f, 2.0f));
  EXPECT_NE(static_cast<float>(1.00000005960464477540),
            valuesOf<float>(*single)[0]);
}

TEST(Csv, ErrorsNameThePlace) {
  EXPECT_EQ(messageOf("1,2\n3\n", ElementType::F32),
            "'t.csv' line 2 has 1 field, the first line has 2");
  EXPECT_EQ(messageOf("1,2\n", ElementType::F32, ranges("2")),
            "'t.csv' has 2 columns, column 2 does not exist (counted from 0)");
  EXPECT_EQ(messageOf("1,2\n", ElementType::F32, {}, ranges("0-1")),
            "'t.csv' has 1 row, row 1 does not exist (counted from 0)");
  EXPECT_EQ(messageOf("", ElementType::F32), "'t.csv' has no row of numbers");
  EXPECT_EQ(messageOf("1.5\n", ElementType::I32),
            "'t.csv' line 1 column 0: '1.5' is not a number of type i32");
  EXPECT_EQ(messageOf("300\n", ElementType::I8),
            "'t.csv' line 1 column 0: '300' is not a number of type i8");
}

class CsvFiles : public FilesTest {};

TEST_F(CsvFiles, GzipAndItsDamages) {
  std::string text;
  for (int i = 0; i < 2000; ++i)
    text += std::to_string(i * 7919 % 1000) + "," + std::to_string(i) + "\n";
  std::string packed = gzip(text);
  Result<Array> array =
      readCsv(write("t.csv.gz", packed), ElementType::I32, ranges("1"), {});
  ASSERT_TRUE(array) << array.error().message;
  EXPECT_EQ(array->shape, (std::vector<int64_t>{2000, 1}));
  EXPECT_EQ(valuesOf<int32_t>(*array)[1999], 1999);
  // Two members are one file.
  array = readCsv(write("u.csv.gz", packed + packed), ElementType::I32, {}, {});
  ASSERT_TRUE(array);
  EXPECT_EQ(array->shape[0], 4000);
  for (size_t size = 2; size < packed.size(); size += 97)
    EXPECT_FALSE(readCsv(write("v.csv.gz", packed.substr(0, size)),
                         ElementType::I32, {}, {}))
        << size;
  packed[packed.size() / 2] ^= 0x10;
  EXPECT_FALSE(readCsv(write("w.csv.gz", packed), ElementType::I32, {}, {}));
}

TEST_F(CsvFiles, InflationHasALimit) {
  std::string packed = gzip(std::string(1 << 20, '1'));
  EXPECT_FALSE(gunzip(bytesOf(packed), (1 << 20) - 1, "bomb"));
  EXPECT_TRUE(gunzip(bytesOf(packed), 1 << 20, "bomb"));
}

} // namespace

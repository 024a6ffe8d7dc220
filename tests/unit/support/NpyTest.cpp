// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Npy.h"

#include "TestFiles.h"

using namespace mgpu;
using namespace mgpu::test;

namespace {

std::string npy(std::string_view dict, std::string_view body, int version = 1) {
  std::string text = "\x93NUMPY";
  text += char(version);
  text += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    text += char(dict.size() >> (8 * i) & 0xff);
  return text + std::string(dict) + std::string(body);
}

ErrorKind kindOf(const std::string &file,
                 std::optional<ElementType> hint = {}) {
  Result<Array> result = parseNpy(bytesOf(file), "x.npy", hint);
  EXPECT_FALSE(result);
  if (result)
    return ErrorKind::Internal;
  EXPECT_NE(result.error().message.find("x.npy"), std::string::npos)
      << result.error().message;
  return result.error().kind;
}

const std::string dict =
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
const std::vector<float> six = {1, 2, 3, 4, 5, 6};

TEST(Npy, ReadsAllVersions) {
  for (int version = 1; version <= 3; ++version) {
    std::string file = npy(dict, rawText(six), version);
    Result<Array> array = parseNpy(bytesOf(file), "x.npy");
    ASSERT_TRUE(array) << array.error().message;
    EXPECT_EQ(array->elementType, ElementType::F32);
    EXPECT_EQ(array->shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(valuesOf<float>(*array), six);
  }
}

TEST(Npy, HeaderIsNumpysOwn) {
  // numpy.save of a (3,) float32 array writes exactly this.
  std::string header = npyHeader(ElementType::F32, std::vector<int64_t>{3});
  std::string expected("\x93NUMPY\x01\x00\x76\x00", 10);
  expected += "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
  expected.resize(127, ' ');
  EXPECT_EQ(header, expected + "\n");
}

TEST(Npy, EveryTruncationIsAnError) {
  std::string file = npy(dict, rawText(six));
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_EQ(kindOf(file.substr(0, size)), ErrorKind::Invalid) << size;
  EXPECT_EQ(kindOf(file + "x"), ErrorKind::Invalid);
}

TEST(Npy, EveryByteOfTheHeaderMayBeAnything) {
  std::string file = npy(dict, rawText(six));
  for (size_t i = 0; i < file.size() - 24; ++i)
    for (int value = 0; value < 256; ++value) {
      std::string changed = file;
      changed[i] = char(value);
      Result<Array> array = parseNpy(bytesOf(changed), "x.npy");
      if (array) {
        EXPECT_EQ(array->bytes.size(), 24u);
      }
    }
}

TEST(Npy, RefusesWhatItWouldMisread) {
  auto withDict = [](const char *text, size_t body) {
    return npy(text, std::string(body, '\0'));
  };
  EXPECT_EQ(kindOf(withDict(
                "{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", 8)),
            ErrorKind::Unsupported);
  EXPECT_EQ(
      kindOf(withDict(
          "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}", 16)),
      ErrorKind::Unsupported);
  EXPECT_EQ(kindOf(withDict(
                "{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", 8)),
            ErrorKind::Unsupported);
  EXPECT_EQ(kindOf(withDict(
                "{'descr': '|V1', 'fortran_order': False, 'shape': (1,)}", 1)),
            ErrorKind::Unsupported);
  EXPECT_EQ(kindOf(npy(dict, rawText(six), 4)), ErrorKind::Unsupported);
  EXPECT_EQ(kindOf(withDict("{'descr': '<f4', 'fortran_order': False, 'shape': "
                            "(4611686018427387904, 4)}",
                            0)),
            ErrorKind::Invalid);
  EXPECT_EQ(kindOf(withDict(
                "{'descr': '|b1', 'fortran_order': False, 'shape': (1,)}", 0)),
            ErrorKind::Invalid);
  std::string two =
      npy("{'descr': '|b1', 'fortran_order': False, 'shape': ()}", "\x02");
  EXPECT_EQ(kindOf(two), ErrorKind::Invalid);
}

class NpyFiles : public FilesTest {};

TEST_F(NpyFiles, WrittenFilesReadBack) {
  for (ElementType type :
       {ElementType::I1, ElementType::I8, ElementType::I16, ElementType::I32,
        ElementType::I64, ElementType::Index, ElementType::F8E4M3FN,
        ElementType::F8E5M2, ElementType::F16, ElementType::BF16,
        ElementType::F32, ElementType::F64})
    for (std::vector<int64_t> shape :
         {std::vector<int64_t>{}, {5}, {0}, {2, 3}, {2, 1, 4}}) {
      Array array{type, shape, {}};
      array.bytes.resize(size_t(*arrayBytes(type, shape)));
      for (size_t i = 0; i < array.bytes.size(); ++i)
        array.bytes[i] = std::byte(type == ElementType::I1 ? i % 2 : i * 37);
      std::string path = (folder / "a.npy").string();
      ASSERT_TRUE(writeNpy(path, array));
      Result<Array> back = readNpy(path, type);
      ASSERT_TRUE(back) << back.error().message;
      EXPECT_EQ(*back, array) << describe(type, shape);
    }
}

TEST_F(NpyFiles, MissingFileIsUsage) {
  Result<Array> array = readNpy((folder / "none.npy").string());
  ASSERT_FALSE(array);
  EXPECT_EQ(array.error().kind, ErrorKind::Usage);
  EXPECT_NE(array.error().message.find("No such file"), std::string::npos);
}

} // namespace

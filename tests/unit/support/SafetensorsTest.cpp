// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Safetensors.h"

#include "TestFiles.h"

using namespace mgpu;
using namespace mgpu::test;

namespace {

const std::string header =
    R"({"__metadata__":{"format":"pt"},)"
    R"("w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
    R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[16,22]}})";

std::string file(const std::string &json, std::string_view body) {
  std::string text;
  for (int i = 0; i < 8; ++i)
    text += char(json.size() >> (8 * i) & 0xff);
  return text + json + std::string(body);
}

class Safetensors : public FilesTest {};

TEST_F(Safetensors, ReadsOneTensor) {
  std::string body(22, '\0');
  std::vector<float> values = {1, -2, 3.5, 0};
  std::memcpy(body.data(), values.data(), 16);
  body[16] = 0x80;
  body[17] = 0x3f;
  std::string path = write("w.safetensors", file(header, body));
  Result<Array> w = readSafetensor(path, "w");
  ASSERT_TRUE(w) << w.error().message;
  EXPECT_EQ(w->shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(valuesOf<float>(*w), values);
  Result<Array> b = readSafetensor(path, "b");
  ASSERT_TRUE(b);
  EXPECT_EQ(b->elementType, ElementType::BF16);
  EXPECT_EQ(loadNumber(*b, 0), 1.0);
  EXPECT_EQ(readSafetensor(path, "x").error().message,
            "'" + path + "' has no tensor 'x'; it has b, w");
}

TEST_F(Safetensors, EveryTruncationIsAnError) {
  std::string whole = file(header, std::string(22, '\0'));
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(readSafetensor(write("t", whole.substr(0, size)), "b"))
        << size;
}

TEST(SafetensorsHeader, RefusesMalformedEntries) {
  auto kind = [](const std::string &entry) {
    Result<SafetensorsEntry> result =
        findSafetensor("{\"w\":" + entry + "}", 16, "w", "f");
    EXPECT_FALSE(result) << entry;
    return result ? ErrorKind::Internal : result.error().kind;
  };
  for (
      const char *entry :
      {"3", "{}", R"({"dtype":"F32","shape":[4]})",
       R"({"dtype":"F32","shape":[4],"data_offsets":[0]})",
       R"({"dtype":"F32","shape":[4],"data_offsets":[16,0]})",
       R"({"dtype":"F32","shape":[4],"data_offsets":[8,24]})",
       R"({"dtype":"F32","shape":[4],"data_offsets":[0,12]})",
       R"({"dtype":"F32","shape":[-4],"data_offsets":[0,16]})",
       R"({"dtype":"F32","shape":[2.0,2],"data_offsets":[0,16]})",
       R"({"dtype":"F32","shape":[9223372036854775807,9],"data_offsets":[0,16]})",
       R"({"dtype":5,"shape":[4],"data_offsets":[0,16]})"})
    EXPECT_EQ(kind(entry), ErrorKind::Invalid) << entry;
  EXPECT_EQ(kind(R"({"dtype":"C64","shape":[2],"data_offsets":[0,16]})"),
            ErrorKind::Unsupported);
  EXPECT_FALSE(findSafetensor("[1]", 16, "w", "f"));
  EXPECT_FALSE(findSafetensor("{\"w\"", 16, "w", "f"));
  EXPECT_FALSE(findSafetensor(std::string(100000, '['), 16, "w", "f"));
}

} // namespace

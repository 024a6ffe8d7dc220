// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dag/ProgramTokens.h"

namespace mgpu::planner {

Result<bool> readFlag(LineReader &line) {
  std::string_view word = line.word();
  if (word != "0" && word != "1")
    return line.bad("expected 0 or 1");
  return word == "1";
}

Result<ElementType> readElementType(LineReader &line) {
  std::string_view word = line.word();
  std::optional<ElementType> type = parseElementType(word);
  if (!type)
    return line.bad(
        fmt::format("\"{}\" is not an element type", word.substr(0, 40)));
  return *type;
}

Result<CollectiveKind> readCollectiveKind(LineReader &line) {
  return readChoice(line, "collective", CollectiveKind::SendRecv,
                    [](CollectiveKind kind) { return toString(kind); });
}

Result<DeviceId> readDevice(LineReader &line) {
  if (line.peek() == "host") {
    line.word();
    return DeviceId::host();
  }
  MGPU_TRY_ASSIGN(uint32_t number, line.integer<uint32_t>("device"));
  if (number >= maxDevices)
    return line.bad(fmt::format("there is no device {}", number));
  return DeviceId{int32_t(number)};
}

Result<BufferId> readBufferId(LineReader &line) {
  MGPU_TRY_ASSIGN(uint32_t number, line.integer<uint32_t>("buffer number"));
  return BufferId{number};
}

Result<Box> readBox(LineReader &line) {
  std::string_view word = line.word();
  Box box;
  auto part = [&](std::string_view stops) {
    std::string_view text = word.substr(0, word.find_first_of(stops));
    word.remove_prefix(text.size());
    return text;
  };
  auto number = [&](std::string_view text) {
    return line.integerOf<int64_t>(text, "figure of a box");
  };
  MGPU_TRY_ASSIGN(box.offset, number(part("+:")));
  while (word.starts_with('+')) {
    word.remove_prefix(1);
    MGPU_TRY_ASSIGN(int64_t size, number(part("*")));
    if (word.empty())
      return line.bad("a box lacks a stride");
    word.remove_prefix(1);
    MGPU_TRY_ASSIGN(int64_t stride, number(part("+:")));
    box.sizes.push_back(size);
    box.strides.push_back(stride);
  }
  if (!word.starts_with(':'))
    return line.bad("a box lacks the width of its elements");
  MGPU_TRY_ASSIGN(box.elementBytes,
                  line.integerOf<uint32_t>(word.substr(1), "width"));
  return box;
}

Result<Dim3> readDimensions(LineReader &line) {
  Dim3 dim;
  for (uint32_t *size : {&dim.x, &dim.y, &dim.z}) {
    MGPU_TRY_ASSIGN(*size, line.integer<uint32_t>("dimension"));
  }
  return dim;
}

Result<void> readTypeAndShape(LineReader &line, ElementType &type,
                              std::vector<int64_t> &shape) {
  MGPU_TRY(line.keyword("type"));
  MGPU_TRY_ASSIGN(type, readElementType(line));
  MGPU_TRY(line.keyword("shape"));
  while (!line.atEnd() && line.peek()[0] >= '0' && line.peek()[0] <= '9') {
    MGPU_TRY_ASSIGN(int64_t size, line.integer<int64_t>("size"));
    shape.push_back(size);
  }
  return {};
}

} // namespace mgpu::planner

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The first line is a column selection, the second a row selection, the rest a
// table: an array of the selected size comes out, or an error.
#include "support/Csv.h"

#include <cstdlib>

using namespace mgpu;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  auto line = [&] {
    size_t end = text.find('\n');
    std::string_view head = text.substr(0, end);
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
    return head;
  };
  Result<IndexRanges> columns = parseIndexRanges(line());
  Result<IndexRanges> rows = parseIndexRanges(line());
  if (!columns || !rows)
    return 0;
  Result<Array> array =
      parseCsv(text, ElementType::F32, *columns, *rows, "input");
  if (!array)
    return 0;
  Result<int64_t> expected = arrayBytes(array->elementType, array->shape);
  if (!expected || uint64_t(*expected) != array->bytes.size())
    abort();
  return 0;
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes: parseNpy gives an array or an error. An array it accepts has the
// bytes its shape says, and reads back the same from what we would write.
#include "support/Npy.h"

#include <cstdlib>

using namespace mgpu;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::span<const std::byte> bytes(reinterpret_cast<const std::byte *>(data),
                                   size);
  Result<Array> array = parseNpy(bytes, "input");
  if (!array)
    return 0;
  Result<int64_t> expected = arrayBytes(array->elementType, array->shape);
  if (!expected || uint64_t(*expected) != array->bytes.size())
    abort();
  std::string header = npyHeader(array->elementType, array->shape);
  std::vector<std::byte> file;
  for (char c : header)
    file.push_back(std::byte(c));
  file.insert(file.end(), array->bytes.begin(), array->bytes.end());
  Result<Array> back = parseNpy(file, "written", array->elementType);
  if (!back || *back != *array)
    abort();
  return 0;
}

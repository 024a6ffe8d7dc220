// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any header text: the entry of tensor "w" comes out, within the file and as
// long as its shape says, or an error.
#include "support/Safetensors.h"

#include <cstdlib>

using namespace mgpu;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view header(reinterpret_cast<const char *>(data), size);
  constexpr uint64_t dataBytes = 1024;
  Result<SafetensorsEntry> entry =
      findSafetensor(header, dataBytes, "w", "input");
  if (!entry)
    return 0;
  Result<int64_t> bytes = arrayBytes(entry->elementType, entry->shape);
  if (!bytes || entry->begin > entry->end || entry->end > dataBytes ||
      entry->end - entry->begin != uint64_t(*bytes))
    abort();
  return 0;
}

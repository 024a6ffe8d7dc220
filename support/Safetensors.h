// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_SAFETENSORS_H
#define MGPU_SUPPORT_SAFETENSORS_H

// One tensor out of a .safetensors file, without reading the others.

#include "support/Array.h"

namespace mgpu {

struct SafetensorsEntry {
  ElementType elementType = ElementType::F32;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0; ///< in bytes, after the header
};

/// Finds `tensor` in the JSON header of `fileName`. `dataBytes` is what follows
/// the header in the file; an entry that leaves it is an error.
Result<SafetensorsEntry> findSafetensor(std::string_view header,
                                        uint64_t dataBytes,
                                        std::string_view tensor,
                                        const std::string &fileName);

Result<Array> readSafetensor(const std::string &path, std::string_view tensor);

} // namespace mgpu

#endif // MGPU_SUPPORT_SAFETENSORS_H

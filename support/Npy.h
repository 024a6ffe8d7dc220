// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_NPY_H
#define MGPU_SUPPORT_NPY_H

// NumPy's .npy files, versions 1 to 3, little-endian and C order.

#include "support/Array.h"
#include "support/FileIO.h"

#include <optional>

namespace mgpu {

/// Parses the bytes of a .npy file; `name` is what errors call it. Unsigned
/// integers become the signless type of their width. NumPy has no bf16 or f8:
/// a two-byte void dtype ('V2', which ml_dtypes writes) is bf16, a one-byte one
/// ('V1') is `hint` where that is an f8 type, else an error. 'i8' is `index`
/// where `hint` says so.
Result<Array> parseNpy(std::span<const std::byte> data, const std::string &name,
                       std::optional<ElementType> hint = {});

/// `streamLimit` is readFile's.
Result<Array> readNpy(const std::string &path,
                      std::optional<ElementType> hint = {},
                      uint64_t streamLimit = defaultStreamLimit);

/// The header of version 1.0 that numpy.save would write, padded to 64 bytes.
std::string npyHeader(ElementType type, std::span<const int64_t> shape);

/// Writes `array` whole or not at all (support/FileIO.h).
Result<void> writeNpy(const std::string &path, const Array &array);

} // namespace mgpu

#endif // MGPU_SUPPORT_NPY_H

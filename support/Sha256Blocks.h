// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_SHA256BLOCKS_H
#define MGPU_SUPPORT_SHA256BLOCKS_H

#include <cstddef>
#include <cstdint>

namespace mgpu {

/// The step of SHA-256 (FIPS 180-4, section 6.2.2) for `count` blocks of 64
/// bytes each, on the eight words of `state`.
void sha256Portable(uint32_t *state, const uint8_t *bytes, size_t count);

/// Hashes blocks with the processor's own instructions; false, and nothing
/// done, where it has none.
bool sha256Native(uint32_t *state, const uint8_t *bytes, size_t count);

} // namespace mgpu

#endif // MGPU_SUPPORT_SHA256BLOCKS_H

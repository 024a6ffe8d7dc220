// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_WORDHASH_H
#define MGPU_SUPPORT_WORDHASH_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mgpu {

/// A fast hash that any change of one word changes, as each step is a bijection
/// of its lane. It resists no forger.
class WordHash {
public:
  void add(const std::byte *bytes, size_t count) {
    for (; count >= sizeof lanes; bytes += sizeof lanes, count -= sizeof lanes)
      for (size_t k = 0; k < 4; ++k)
        mix(lanes[k], bytes + 8 * k, 8);
    for (size_t k = 0; count > 0; ++k) {
      const size_t part = std::min<size_t>(count, 8);
      mix(lanes[k % 4], bytes, part);
      bytes += part, count -= part;
    }
  }
  uint64_t value() const {
    uint64_t all = 0;
    for (uint64_t lane : lanes)
      all = (all ^ lane ^ (lane >> 29)) * factor;
    return all;
  }

private:
  static constexpr uint64_t factor = 0x9e3779b97f4a7c15;
  static void mix(uint64_t &lane, const std::byte *bytes, size_t count) {
    uint64_t word = 0;
    std::memcpy(&word, bytes, count);
    lane = (lane ^ word) * factor;
  }
  uint64_t lanes[4] = {1, 2, 3, 4};
};

} // namespace mgpu

#endif // MGPU_SUPPORT_WORDHASH_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_BYTES_H
#define MGPU_SUPPORT_BYTES_H

// Messages between processes of one program on one machine.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace mgpu {

using Bytes = std::vector<std::byte>;

inline void append(Bytes &to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}
template <typename T>
requires(
    std::is_trivially_copyable_v<T> &&
    !std::is_convertible_v<
        const T &, std::span<const std::byte>>) void append(Bytes &to,
                                                            const T &value) {
  append(to, std::as_bytes(std::span(&value, 1)));
}
inline void append(Bytes &to, const std::string &text) {
  append(to, uint64_t(text.size()));
  append(to, std::as_bytes(std::span(text)));
}

/// Takes off the front what append() wrote.
class ByteReader {
public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes(bytes) {}

  /// False, and nothing is taken, if too few bytes are left.
  template <typename T>
  bool take(T &value) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (bytes.size() < sizeof value)
      return false;
    std::memcpy(&value, bytes.data(), sizeof value);
    bytes = bytes.subspan(sizeof value);
    return true;
  }
  /// A zero value if too few bytes are left.
  template <typename T>
  T take() {
    T value{};
    take(value);
    return value;
  }
  /// Ends where the bytes do, whatever size stands before it.
  std::string text() {
    const auto told =
        take<uint64_t>(); // takes bytes, so they are counted after
    const size_t size = std::min<uint64_t>(told, bytes.size());
    std::string out(reinterpret_cast<const char *>(bytes.data()), size);
    bytes = bytes.subspan(size);
    return out;
  }
  bool isEmpty() const { return bytes.empty(); }
  std::span<const std::byte> rest() const { return bytes; }

private:
  std::span<const std::byte> bytes;
};

} // namespace mgpu

#endif // MGPU_SUPPORT_BYTES_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_REPLAY_SHAREDBYTES_H
#define MGPU_CAPTURE_REPLAY_SHAREDBYTES_H

#include <cstddef>
#include <memory>
#include <span>

namespace mgpu::capture {

/// Bytes that several programs of this process read and none may write: the
/// pages refuse it. They live as long as one of the programs.
class SharedBytes {
public:
  /// Fewer bytes are not worth a page of their own.
  static constexpr size_t least = 64 << 10;
  /// The memory that has these bytes already, else a copy of them; null where
  /// there is no memory for one. From any thread.
  static std::shared_ptr<const SharedBytes>
  of(std::span<const std::byte> bytes);
  ~SharedBytes();
  SharedBytes(const SharedBytes &) = delete;
  SharedBytes &operator=(const SharedBytes &) = delete;

  std::span<const std::byte> bytes() const { return {memory, size}; }

private:
  SharedBytes(std::byte *memory, size_t size) : memory(memory), size(size) {}
  std::byte *memory; ///< whole pages, and one more for reads past the end
  size_t size;
};

/// Gives the whole pages within memory that nothing reads any more back to the
/// system; they are zero when they are used again.
void releasePages(std::span<std::byte> memory);

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_REPLAY_SHAREDBYTES_H

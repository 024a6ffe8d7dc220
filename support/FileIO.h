// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_FILEIO_H
#define MGPU_SUPPORT_FILEIO_H

// Whole files in and out. Every error names the file and what the system said.

#include "support/Result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mgpu {

/// A file descriptor that closes itself.
class Descriptor {
public:
  /// Negative: none, as open() fails.
  explicit Descriptor(int descriptor) : descriptor(descriptor) {}
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  ~Descriptor() {
    if (descriptor >= 0)
      ::close(descriptor);
  }
  int get() const { return descriptor; }
  bool isOpen() const { return descriptor >= 0; }
  /// The open file for whoever takes names; also one that has no other.
  std::string path() const {
    return "/proc/self/fd/" + std::to_string(descriptor);
  }
  /// Closes now, so that the caller sees a delayed write error.
  int close() { return ::close(std::exchange(descriptor, -1)); }

private:
  int descriptor;
};

/// Writes all of `data`. 0, or the errno of the write that failed.
int writeFully(int descriptor, std::span<const std::byte> data);

/// The most that a reader takes before it calls a file too large.
inline constexpr uint64_t defaultFileLimit = uint64_t(64) << 30;

/// The most that a reader takes of a pipe before it concludes that it never
/// ends.
inline constexpr uint64_t defaultStreamLimit = uint64_t(1) << 30;

/// Bytes of the regular file `path`.
Result<uint64_t> fileSize(const std::string &path);

/// The whole of `path`, at most `limit` bytes. Pipes are read to their end, at
/// most `streamLimit` bytes; so are files that say they are smaller than they
/// are (those in /proc, or one being written). Devices are refused, as
/// /dev/zero and /dev/urandom have no end; terminals and /dev/null are read.
Result<std::vector<std::byte>>
readFile(const std::string &path, uint64_t limit = defaultFileLimit,
         uint64_t streamLimit = defaultStreamLimit);

/// `size` bytes of the regular file `path` from `offset` on; an error where it
/// ends first.
Result<std::vector<std::byte>> readFileRange(const std::string &path,
                                             uint64_t offset, uint64_t size);

/// Writes the pieces, one after the other, to a temporary file beside `path`
/// and renames it over `path`: after an error (a full disk) the old file is
/// intact and no temporary is left. A device or pipe is written in place.
Result<void> writeFileAtomic(const std::string &path,
                             std::span<const std::span<const std::byte>> data);
Result<void> writeFileAtomic(const std::string &path, std::string_view text);

/// Inflates gzip data (several members are joined), at most `limit` bytes out.
/// `name` is what an error calls it.
Result<std::string> gunzip(std::span<const std::byte> data, uint64_t limit,
                           const std::string &name);

/// The text in `path`, inflated where it begins with gzip's magic number. At
/// most `limit` bytes.
Result<std::string> readText(const std::string &path, uint64_t limit);

} // namespace mgpu

#endif // MGPU_SUPPORT_FILEIO_H

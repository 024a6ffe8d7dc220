// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_ZIP_H
#define MGPU_SUPPORT_ZIP_H

// Reads zip archives (PKWARE's APPNOTE 6.3, with zip64): entries that are
// stored, which stay where the mapped file has them, or deflated. The file may
// be hostile: nothing is read outside of it, entries do not overlap, and none
// inflates to more than it says.

#include "support/MappedFile.h"

#include <map>

namespace mgpu {

/// Bytes with what they live by: a mapped file, or memory of their own.
struct HeldBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> holder;
};

/// Whether the file begins with a local header of a zip archive.
bool isZipFile(const std::string &path);

class ZipFile {
public:
  struct Entry {
    uint64_t header = 0;           ///< where its local header begins
    uint64_t packed = 0, size = 0; ///< bytes in the file and of what it holds
    uint32_t crc = 0;
    uint16_t method = 0; ///< 0 is stored, 8 deflated
  };

  /// Reads the directory. Errors: Invalid for a file that is no archive, is
  /// cut, names an entry twice or has entries that overlap; Unsupported for
  /// encrypted entries and archives of several files.
  static Result<ZipFile> open(const std::string &path);

  const std::map<std::string, Entry> &entries() const { return all; }
  /// The contents of an entry: of a stored one the file's own bytes. Invalid
  /// where there is none of that name, it has more than `limit` bytes, or its
  /// checksum is another.
  Result<HeldBytes> read(const std::string &name, uint64_t limit) const;
  const std::string &path() const { return file->path(); }
  const std::shared_ptr<const MappedFile> &mapped() const { return file; }

private:
  Result<void> readDirectory();
  Result<void> addEntries(const std::vector<std::byte> &directory,
                          uint64_t count, uint64_t end);
  /// A copy, which does not change while it is read.
  std::vector<std::byte> copyOf(uint64_t begin, uint64_t bytes) const {
    const auto from = file->bytes().subspan(begin, bytes);
    return {from.begin(), from.end()};
  }
  tl::unexpected<Error> broken(const std::string &what) const;

  std::shared_ptr<const MappedFile> file;
  std::map<std::string, Entry> all;
};

} // namespace mgpu

#endif // MGPU_SUPPORT_ZIP_H

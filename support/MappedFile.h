// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_MAPPEDFILE_H
#define MGPU_SUPPORT_MAPPEDFILE_H

// A regular file's bytes, in pages that all processes share which map it. Where
// the file is cut meanwhile, a page that is gone reads as zeros, so that no
// SIGBUS ends the process, and isChanged() tells.

#include "support/FileIO.h"

#include <csignal>
#include <memory>
#include <sys/stat.h>

namespace mgpu {

class MappedFile {
public:
  static Result<std::shared_ptr<const MappedFile>>
  open(const std::string &path);
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {memory, size}; }
  /// Whether the file was cut or written since it was opened, which another
  /// file that took its name does not do.
  bool isChanged() const;
  const std::string &path() const { return file; }

  struct Watched; ///< addresses whose lost pages are replaced

private:
  MappedFile(std::string file, int descriptor)
      : file(std::move(file)), descriptor(descriptor) {}
  void watch();
  static void onLostPage(int signal, siginfo_t *info, void *context);

  std::string file;
  Descriptor descriptor;
  struct stat asOpened {};
  size_t size = 0;
  const std::byte *memory = nullptr;
  Watched *watched = nullptr;
};

} // namespace mgpu

#endif // MGPU_SUPPORT_MAPPEDFILE_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/FileNames.h"

#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>

namespace mgpu {

std::string followLinks(const std::string &path) {
  constexpr int mostLinks = 40; // as Linux has it (MAXSYMLINKS)
  std::filesystem::path at = path;
  for (int k = 0; k < mostLinks; ++k) {
    std::error_code error;
    const std::filesystem::path next = std::filesystem::read_symlink(at, error);
    if (error)
      return at.string();
    at = next.is_absolute() ? next : at.parent_path() / next;
  }
  return path;
}

std::string fileIdentity(const std::string &path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0)
    return S_ISREG(status.st_mode)
               ? fmt::format("{}:{}", uint64_t(status.st_dev),
                             uint64_t(status.st_ino))
               : "";
  const std::filesystem::path target = followLinks(path);
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::canonical(
      target.has_parent_path() ? target.parent_path() : ".", error);
  return error ? "" : (folder / target.filename()).string();
}

} // namespace mgpu

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/FileNames.h"

#include "support/Spelling.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

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

Result<void> checkOutputPath(const std::string &path) {
  struct stat status {};
  bool exists = ::stat(path.c_str(), &status) == 0;
  int code = 0;
  if (exists && S_ISDIR(status.st_mode)) {
    code = EISDIR;
  } else if (exists && !S_ISREG(status.st_mode)) { // written in place
    code = ::access(path.c_str(), W_OK) == 0 ? 0 : errno;
  } else {
    const std::string target = followLinks(path);
    size_t slash = target.rfind('/');
    std::string folder = slash == std::string::npos
                             ? "."
                             : target.substr(0, std::max<size_t>(slash, 1));
    code = ::access(folder.c_str(), W_OK | X_OK) == 0 ? 0 : errno;
  }
  if (code == 0)
    return {};
  return fail(ErrorKind::Usage,
              fmt::format("cannot write '{}': {}", path, std::strerror(code)));
}

/// The file of the same folder that may have been meant: with another ending,
/// or with the same one and a like name.
static std::string similarFile(const std::string &path) {
  const std::filesystem::path named = path;
  const std::filesystem::path folder = named.parent_path();
  std::vector<std::string> stems, others;
  std::error_code none;
  constexpr size_t mostNames = 1000;
  for (std::filesystem::directory_iterator
           at(folder.empty() ? "." : folder, none),
       end;
       at != end && stems.size() < mostNames; at.increment(none)) {
    const std::filesystem::path &found = at->path();
    if (found.stem() == named.stem() && !at->is_directory(none))
      others.push_back((folder / found.filename()).string());
    if (found.extension() == named.extension())
      stems.push_back(found.stem().string());
  }
  // A program before what was made of it.
  auto isBetter = [](const std::string &a, const std::string &b) {
    return std::pair(!a.ends_with(".mlir"), a) <
           std::pair(!b.ends_with(".mlir"), b);
  };
  if (!others.empty())
    return fmt::format("; did you mean '{}'?",
                       *std::ranges::min_element(others, isBetter));
  std::sort(stems.begin(), stems.end());
  std::string meant = didYouMean(named.stem().string(), stems);
  if (meant.empty())
    return "";
  // The name with its folder and its ending in place of the stem.
  const size_t open = meant.find('\'') + 1, close = meant.rfind('\'');
  const std::string stem = meant.substr(open, close - open);
  return meant.replace(open, close - open,
                       (folder / (stem + named.extension().string())).string());
}

Result<void> checkReadable(const std::string &path) {
  struct stat status {};
  int code = 0;
  if (::stat(path.c_str(), &status) != 0 || ::access(path.c_str(), R_OK) != 0)
    code = errno;
  else if (S_ISDIR(status.st_mode))
    code = EISDIR;
  if (code == 0)
    return {};
  return fail(ErrorKind::Usage,
              fmt::format("cannot read '{}': {}{}", path, std::strerror(code),
                          code == ENOENT ? similarFile(path) : ""));
}

} // namespace mgpu

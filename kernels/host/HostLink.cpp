// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/host/HostCodegen.h"

#include "support/FileIO.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <spawn.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace mgpu::kernels {

namespace {

namespace fs = std::filesystem;

constexpr llvm::StringLiteral folderName = "mgpu-link-";

/// The lock by which the owner of a folder is known to live; -1 where another
/// has it, or the folder is gone or not ours.
int lockFolder(const std::string &path) {
  const int folder =
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat found = {};
  if (folder >= 0 && ::fstat(folder, &found) == 0 &&
      found.st_uid == ::geteuid() && ::flock(folder, LOCK_EX | LOCK_NB) == 0 &&
      ::fstat(folder, &found) == 0 && found.st_nlink > 0)
    return folder;
  if (folder >= 0)
    ::close(folder);
  return -1;
}

/// Removes the folders of those who were killed.
void removeAbandoned(const std::string &parent) {
  std::error_code error;
  for (fs::directory_iterator at(parent, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!llvm::StringRef(name).starts_with(folderName))
      continue;
    const int lock = lockFolder(at->path().string());
    if (lock < 0)
      continue;
    std::error_code ignored;
    fs::remove_all(at->path(), ignored);
    ::close(lock);
  }
}

/// A private directory that goes away with its owner, or when the next process
/// makes one.
class TemporaryDirectory {
public:
  TemporaryDirectory() {
    const char *chosen = std::getenv("TMPDIR");
    const std::string parent = chosen && *chosen ? chosen : "/tmp";
    static std::once_flag isClean;
    std::call_once(isClean, [&] { removeAbandoned(parent); });
    // Who cleans up may take one between its making and its lock: then another
    // is made. Where folders cannot be locked, the last is used as it is.
    constexpr int tries = 16;
    for (int k = 0; k < tries && lock < 0; ++k) {
      std::string name = parent + "/" + folderName.str() + "XXXXXX";
      if (!mkdtemp(name.data())) {
        reason = std::strerror(errno);
        path.clear();
        return;
      }
      if (!path.empty())
        ::rmdir(path.c_str());
      path = name;
      lock = lockFolder(name);
    }
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path.empty())
      fs::remove_all(path, ignored);
    if (lock >= 0)
      ::close(lock);
  }
  TemporaryDirectory(const TemporaryDirectory &) = delete;
  TemporaryDirectory &operator=(const TemporaryDirectory &) = delete;

  std::string path;   ///< empty where it could not be made
  std::string reason; ///< why

private:
  int lock = -1; ///< held until the folder is gone
};

/// The linker says so, but its exit code is that of any of its errors.
bool isDiskFull(const std::string &folder) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  return !error && space.available == 0;
}

Result<std::string> findLinker() {
  if (const char *chosen = std::getenv("MGPU_LD_LLD"); chosen && *chosen) {
    if (access(chosen, X_OK) == 0)
      return std::string(chosen);
    return fail(ErrorKind::Absent,
                std::string("cannot start the linker '") + chosen +
                    "' that MGPU_LD_LLD in the environment names; let it name "
                    "ld.lld, or unset it");
  }
  if (access(MGPU_LD_LLD, X_OK) == 0)
    return std::string(MGPU_LD_LLD);
  if (auto found = llvm::sys::findProgramByName("ld.lld"))
    return *found;
  return fail(ErrorKind::Absent,
              "the linker ld.lld, which host kernels are linked with, was "
              "found neither at " MGPU_LD_LLD " nor in PATH; install lld-22");
}

/// The runtime resolves these from the process; anything else is ours to
/// refuse here rather than at load.
bool isKnownSymbol(llvm::StringRef name) {
  static constexpr llvm::StringLiteral others[] = {
      "printf", "puts",    "putchar",
      "malloc", "free",    "memcpy",
      "memset", "memmove", "_GLOBAL_OFFSET_TABLE_"};
  if (llvm::is_contained(others, name))
    return true;
  static constexpr llvm::StringLiteral math[] = {
      "acos",    "acosh", "asin",      "asinh",     "atan",  "atan2",
      "atanh",   "cbrt",  "ceil",      "cos",       "cosh",  "erf",
      "erfc",    "exp",   "exp2",      "exp10",     "expm1", "fabs",
      "floor",   "fma",   "fmax",      "fmin",      "fmod",  "ldexp",
      "log",     "log10", "log1p",     "log2",      "pow",   "rint",
      "round",   "sin",   "sincos",    "sinh",      "sqrt",  "tan",
      "tanh",    "trunc", "roundeven", "nearbyint", "modf",  "fmaximum",
      "fminimum"};
  return llvm::is_contained(math, name) ||
         (name.consume_back("f") && llvm::is_contained(math, name));
}

Result<void> checkSymbols(const llvm::SmallVectorImpl<char> &object) {
  auto file = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(
      llvm::StringRef(object.data(), object.size()), "kernel.o"));
  if (!file)
    return fail(ErrorKind::Internal, "the object file of a kernel is broken: " +
                                         llvm::toString(file.takeError()));
  for (const llvm::object::SymbolRef &symbol : (*file)->symbols()) {
    auto flags = symbol.getFlags();
    auto name = symbol.getName();
    if (!flags || !name) {
      if (!flags)
        llvm::consumeError(flags.takeError());
      if (!name)
        llvm::consumeError(name.takeError());
      continue;
    }
    if ((*flags & llvm::object::SymbolRef::SF_Undefined) && !name->empty() &&
        !isKnownSymbol(*name))
      return fail(ErrorKind::Unsupported,
                  "the kernel needs the library function '" + name->str() +
                      "', which the host target does not provide at this CPU "
                      "level; compile for a higher one or avoid the operation");
  }
  return {};
}

} // namespace

Result<std::string> linkerId() {
  MGPU_TRY_ASSIGN(const std::string linker, findLinker());
  std::error_code error;
  const auto bytes = fs::file_size(linker, error);
  const auto changed = fs::last_write_time(linker, error);
  return linker + " " + std::to_string(bytes) + " " +
         std::to_string(changed.time_since_epoch().count());
}

Result<std::vector<std::byte>>
linkSharedObject(const llvm::SmallVectorImpl<char> &object) {
  MGPU_TRY(checkSymbols(object));
  MGPU_TRY_ASSIGN(std::string linker, findLinker());
  TemporaryDirectory directory;
  if (directory.path.empty())
    return fail(ErrorKind::Invalid,
                "no temporary directory could be made to link a kernel in (" +
                    directory.reason + "); set TMPDIR to a writable directory");
  std::string input = directory.path + "/kernel.o",
              output = directory.path + "/kernel.so";
  if (auto written = writeFileAtomic(
          input, std::string_view(object.data(), object.size()));
      !written)
    return fail(ErrorKind::Invalid,
                written.error().message +
                    "; TMPDIR names the directory to link kernels in");
  std::string arguments[] = {linker,
                             "-shared",
                             "--hash-style=gnu",
                             "-s",
                             "--build-id=none",
                             "-z",
                             "noexecstack",
                             "-o",
                             output,
                             input};
  std::vector<char *> argv;
  for (std::string &argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  if (int error = posix_spawn(&child, linker.c_str(), nullptr, nullptr,
                              argv.data(), environ))
    return fail(ErrorKind::Absent,
                "cannot start " + linker + ": " + std::strerror(error));
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      return fail(ErrorKind::Internal,
                  std::string("waiting for ld.lld: ") + std::strerror(errno));
  const bool isLinked = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!isLinked && isDiskFull(directory.path))
    return fail(ErrorKind::Invalid,
                "cannot write '" + output + "': " + std::strerror(ENOSPC) +
                    "; TMPDIR names the directory to link kernels in");
  if (!isLinked)
    return fail(ErrorKind::Internal,
                "ld.lld could not link a kernel (its message is above)");
  std::ifstream file(output, std::ios::binary | std::ios::ate);
  std::vector<std::byte> bytes(file ? size_t(file.tellg()) : 0);
  file.seekg(0);
  file.read(reinterpret_cast<char *>(bytes.data()),
            std::streamsize(bytes.size()));
  if (!file || bytes.empty())
    return fail(ErrorKind::Internal, "cannot read back " + output);
  return bytes;
}

} // namespace mgpu::kernels

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/FileIO.h"

#include "support/Clock.h"
#include "support/FileNames.h"
#include "support/Random.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <zlib.h>

namespace mgpu {

namespace {

tl::unexpected<Error> systemError(const char *verb, const std::string &path,
                                  int code) {
  ErrorKind kind = code == ENOENT || code == EACCES || code == EISDIR ||
                           code == ENOTDIR || code == ELOOP
                       ? ErrorKind::Usage
                       : ErrorKind::Invalid;
  return fail(kind,
              fmt::format("cannot {} '{}': {}", verb, path, strerror(code)));
}

bool isEndlessDevice(int descriptor, const struct stat &status) {
  constexpr unsigned nullMajor = 1, nullMinor = 3; // Linux's devices.txt
  if (S_ISBLK(status.st_mode))
    return true;
  return S_ISCHR(status.st_mode) &&
         status.st_rdev != makedev(nullMajor, nullMinor) &&
         !::isatty(descriptor);
}

/// Opens for reading; refuses directories, whose read() message is unclear, and
/// devices.
Result<int> openToRead(const std::string &path, struct stat &status) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return systemError("read", path, errno);
  int code = 0;
  if (::fstat(descriptor, &status) != 0)
    code = errno;
  else if (S_ISDIR(status.st_mode))
    code = EISDIR;
  bool device = code == 0 && isEndlessDevice(descriptor, status);
  if (code == 0 && !device)
    return descriptor;
  ::close(descriptor);
  if (device)
    return fail(ErrorKind::Usage,
                fmt::format("cannot read '{}': it is a device, which may never "
                            "end: give a file or a pipe",
                            path));
  return systemError("read", path, code);
}

/// Reads up to `size` bytes; fewer only at the end of the file. -1 on error.
ssize_t readFully(int descriptor, std::byte *data, size_t size) {
  size_t done = 0;
  while (done < size) {
    ssize_t count = ::read(descriptor, data + done,
                           std::min<size_t>(size - done, size_t(1) << 30));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return -1;
    if (count == 0)
      break;
    done += static_cast<size_t>(count);
  }
  return static_cast<ssize_t>(done);
}

int writePieces(int descriptor,
                std::span<const std::span<const std::byte>> data) {
  for (std::span<const std::byte> piece : data)
    if (int code = writeFully(descriptor, piece))
      return code;
  return 0;
}

} // namespace

int writeFully(int descriptor, std::span<const std::byte> data) {
  while (!data.empty()) {
    ssize_t count = ::write(descriptor, data.data(),
                            std::min<size_t>(data.size(), size_t(1) << 30));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return errno;
    data = data.subspan(static_cast<size_t>(count));
  }
  return 0;
}

Result<uint64_t> fileSize(const std::string &path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    return systemError("read", path, errno);
  if (!S_ISREG(status.st_mode))
    return fail(ErrorKind::Usage,
                fmt::format("'{}' is not a regular file", path));
  return static_cast<uint64_t>(status.st_size);
}

Result<std::vector<std::byte>> readFile(const std::string &path, uint64_t limit,
                                        uint64_t streamLimit) {
  struct stat status {};
  MGPU_TRY_ASSIGN(int raw, openToRead(path, status));
  Descriptor descriptor(raw);
  auto tooLarge = [&] {
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' is larger than {} bytes", path, limit));
  };
  uint64_t known = S_ISREG(status.st_mode) ? uint64_t(status.st_size) : 0;
  if (known > limit)
    return tooLarge();
  uint64_t unforeseen = std::min(streamLimit, limit - known);
  std::vector<std::byte> data;
  // A pipe, or a file that grows or lies about its size, as those in /proc do,
  // needs more than one round; the round that meets the end stops.
  size_t step = std::max<size_t>(known + 1, size_t(64) << 10);
  for (;;) {
    size_t before = data.size();
    data.resize(before + step);
    ssize_t count = readFully(descriptor.get(), data.data() + before, step);
    if (count < 0)
      return systemError("read", path, errno);
    data.resize(before + static_cast<size_t>(count));
    if (data.size() > known + unforeseen)
      return fail(ErrorKind::Invalid,
                  fmt::format("'{}' goes on after {} bytes, where it should "
                              "have ended: save what is wanted in a file first",
                              path, known + unforeseen));
    if (static_cast<size_t>(count) < step)
      return data;
  }
}

Result<std::vector<std::byte>> readFileRange(const std::string &path,
                                             uint64_t offset, uint64_t size) {
  struct stat status {};
  MGPU_TRY_ASSIGN(int raw, openToRead(path, status));
  Descriptor descriptor(raw);
  uint64_t end = static_cast<uint64_t>(status.st_size);
  if (!S_ISREG(status.st_mode))
    return fail(ErrorKind::Usage,
                fmt::format("cannot read '{}' in parts: save it in a regular "
                            "file first",
                            path));
  if (offset > end || size > end - offset)
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' ends before byte {} + {}: it is truncated",
                            path, offset, size));
  std::vector<std::byte> data(size);
  if (::lseek(descriptor.get(), static_cast<off_t>(offset), SEEK_SET) < 0)
    return systemError("read", path, errno);
  ssize_t count = readFully(descriptor.get(), data.data(), size);
  if (count < 0)
    return systemError("read", path, errno);
  if (static_cast<uint64_t>(count) != size)
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' became shorter while it was read", path));
  return data;
}

/// Makes a file `name` beside another, to be written; -1 with errno. The system
/// takes the process's mask from `mode`, which mkostemp() does not.
static int openBeside(const std::string &path, mode_t mode, std::string &name) {
  static std::atomic<uint64_t> numMade = 0;
  Random random(uint64_t(Clock::now().time_since_epoch().count()) ^
                (uint64_t(::getpid()) << 40) ^ (numMade++ << 56));
  for (int tries = 0;; ++tries) {
    name = fmt::format("{}.{:06x}", path, random.below(1 << 24));
    const int made =
        ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (made >= 0 || errno != EEXIST || tries == 100)
      return made;
  }
}

Result<void> writeFileAtomic(const std::string &path,
                             std::span<const std::span<const std::byte>> data) {
  // Through a symbolic link its target is made or replaced, not the link.
  const std::string target = followLinks(path);
  mode_t mode = 0;
  bool exists = false;
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode))
      return systemError("write", path, EISDIR);
    if (!S_ISREG(status.st_mode)) {
      Descriptor descriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
      int code =
          descriptor.isOpen() ? writePieces(descriptor.get(), data) : errno;
      if (code != 0)
        return systemError("write", path, code);
      return {};
    }
    mode = status.st_mode & 07777;
    exists = true;
  }
  if (::lstat(target.c_str(), &status) == 0 && S_ISLNK(status.st_mode))
    return systemError("write", path, ELOOP);
  std::string temporary;
  Descriptor descriptor(openBeside(target, exists ? 0600 : 0666, temporary));
  if (!descriptor.isOpen())
    return systemError("write", path, errno);
  int code = writePieces(descriptor.get(), data);
  if (code == 0 && exists && ::fchmod(descriptor.get(), mode) != 0)
    code = errno;
  if (descriptor.close() != 0 && code == 0)
    code = errno;
  if (code == 0 && ::rename(temporary.c_str(), target.c_str()) != 0)
    code = errno;
  if (code == 0)
    return {};
  ::unlink(temporary.c_str());
  return systemError("write", path, code);
}

Result<void> writeFileAtomic(const std::string &path, std::string_view text) {
  std::span<const std::byte> piece =
      std::as_bytes(std::span(text.data(), text.size()));
  return writeFileAtomic(path, std::span(&piece, 1));
}

Result<std::string> gunzip(std::span<const std::byte> data, uint64_t limit,
                           const std::string &name) {
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 16) != Z_OK)
    return fail(ErrorKind::Internal, "zlib did not start");
  auto corrupt = [&](const char *what) {
    inflateEnd(&stream);
    return fail(ErrorKind::Invalid, fmt::format("'{}' {}", name, what));
  };
  std::string text;
  size_t given = 0;
  for (;;) {
    if (stream.avail_in == 0) {
      size_t count = std::min<size_t>(data.size() - given, UINT_MAX);
      // zlib's interface is not const-correct; it does not write here.
      stream.next_in = reinterpret_cast<Bytef *>(
          const_cast<std::byte *>(data.data() + given));
      stream.avail_in = static_cast<uInt>(count);
      given += count;
    }
    constexpr size_t chunk = size_t(256) << 10;
    size_t before = text.size();
    text.resize(before + chunk);
    stream.next_out = reinterpret_cast<Bytef *>(text.data() + before);
    stream.avail_out = chunk;
    int status = inflate(&stream, Z_NO_FLUSH);
    size_t produced = chunk - stream.avail_out;
    text.resize(before + produced);
    if (text.size() > limit)
      return corrupt("inflates to more than the limit");
    bool atEnd = stream.avail_in == 0 && given == data.size();
    if (status == Z_STREAM_END) {
      if (atEnd)
        break;
      if (inflateReset(&stream) != Z_OK)
        return corrupt("is not valid gzip data");
    } else if (status == Z_BUF_ERROR ||
               (status == Z_OK && atEnd && !produced)) {
      return corrupt("is truncated: the gzip data ends early");
    } else if (status != Z_OK) {
      return corrupt("is not valid gzip data");
    }
  }
  inflateEnd(&stream);
  return text;
}

Result<std::string> readText(const std::string &path, uint64_t limit) {
  MGPU_TRY_ASSIGN(std::vector<std::byte> data, readFile(path, limit));
  if (data.size() >= 2 && data[0] == std::byte{0x1f} &&
      data[1] == std::byte{0x8b})
    return gunzip(data, limit, path);
  return std::string(reinterpret_cast<const char *>(data.data()), data.size());
}

} // namespace mgpu

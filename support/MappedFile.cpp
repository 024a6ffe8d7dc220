// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/MappedFile.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <mutex>
#include <sys/mman.h>

namespace mgpu {

/// One for each file that is mapped. They are used again and never freed, as a
/// signal may read them at any time.
struct MappedFile::Watched {
  std::atomic<uintptr_t> begin{0}, end{0};
  std::atomic<bool> isTaken{false};
  Watched *next = nullptr;
};

namespace {

std::atomic<MappedFile::Watched *> firstWatched{nullptr};
struct sigaction busBefore;
const size_t pageBytes = size_t(::sysconf(_SC_PAGESIZE));

/// Does what the process did with the signal before.
void passOn(int signal, siginfo_t *info, void *context) {
  if (busBefore.sa_flags & SA_SIGINFO)
    return busBefore.sa_sigaction(signal, info, context);
  if (busBefore.sa_handler != SIG_DFL && busBefore.sa_handler != SIG_IGN)
    return busBefore.sa_handler(signal);
  ::sigaction(signal, &busBefore, nullptr);
  ::raise(signal);
}

} // namespace

void MappedFile::onLostPage(int signal, siginfo_t *info, void *context) {
  const int error = errno;
  const auto at = uintptr_t(info->si_addr);
  for (Watched *each = firstWatched; each; each = each->next)
    if (each->begin <= at && at < each->end &&
        ::mmap(reinterpret_cast<void *>(at / pageBytes * pageBytes), pageBytes,
               PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
               0) != MAP_FAILED) {
      errno = error;
      return;
    }
  errno = error;
  passOn(signal, info, context);
}

void MappedFile::watch() {
  static std::mutex lock;
  const std::lock_guard guard(lock);
  static const bool isInstalled = [] {
    struct sigaction action {};
    action.sa_sigaction = &MappedFile::onLostPage;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    return ::sigaction(SIGBUS, &action, &busBefore) == 0;
  }();
  (void)isInstalled; // it fails for numbers that are no signals alone
  for (watched = firstWatched; watched && watched->isTaken.exchange(true);)
    watched = watched->next;
  if (!watched) {
    watched = new Watched;
    watched->isTaken = true;
    watched->next = firstWatched;
    firstWatched = watched;
  }
  watched->end = uintptr_t(memory) + size;
  watched->begin = uintptr_t(memory);
}

Result<std::shared_ptr<const MappedFile>>
MappedFile::open(const std::string &path) {
  struct stat status {};
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::shared_ptr<MappedFile> file(new MappedFile(path, descriptor));
  auto failed = [&] {
    return fail(ErrorKind::Usage,
                fmt::format("cannot read '{}': {}", path, strerror(errno)));
  };
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0)
    return failed();
  if (!S_ISREG(status.st_mode))
    return fail(ErrorKind::Usage,
                fmt::format("'{}' is not a regular file", path));
  file->asOpened = status;
  file->size = size_t(status.st_size);
  if (file->size == 0)
    return file;
  void *memory =
      ::mmap(nullptr, file->size, PROT_READ, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED)
    return failed();
  file->memory = static_cast<const std::byte *>(memory);
  file->watch();
  return file;
}

MappedFile::~MappedFile() {
  if (!memory)
    return;
  watched->begin = watched->end = 0;
  ::munmap(const_cast<std::byte *>(memory), size);
  watched->isTaken = false;
}

bool MappedFile::isChanged() const {
  struct stat now {};
  return ::fstat(descriptor.get(), &now) != 0 || now.st_size != off_t(size) ||
         now.st_mtim.tv_sec != asOpened.st_mtim.tv_sec ||
         now.st_mtim.tv_nsec != asOpened.st_mtim.tv_nsec;
}

} // namespace mgpu

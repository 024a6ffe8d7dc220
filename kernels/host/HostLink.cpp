// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels are linked by lld in this process and in memory. lld has one state
// for all of a process, so one link is made at a time.
#include "kernels/host/HostCodegen.h"

#include "support/FileIO.h"

#include "lld/Common/CommonLinkerContext.h"
#include "lld/Common/Driver.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <system_error>
#include <thread>

LLD_HAS_DRIVER(elf);

namespace mgpu::kernels {

namespace {

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

/// Reads a pipe until it is empty and `isWritten` is set. There may be no end
/// of it: a child that another thread has forked may have its other side, too.
std::vector<std::byte> drain(const Descriptor &pipe,
                             const Descriptor &isWritten) {
  std::vector<std::byte> bytes;
  std::byte part[1 << 14];
  for (;;) {
    pollfd ready[] = {{pipe.get(), POLLIN, 0}, {isWritten.get(), POLLIN, 0}};
    if (poll(ready, 2, -1) < 0)
      continue;
    if (!(ready[0].revents & POLLIN))
      return bytes;
    const ssize_t got = read(pipe.get(), part, sizeof part);
    if (got > 0)
      bytes.insert(bytes.end(), part, part + got);
  }
}

/// Runs lld. Its messages are the error.
Result<void> runLinker(const std::string &input, const std::string &output) {
  const char *arguments[] = {
      "ld.lld",      "-shared",         "--hash-style=gnu",
      "-s",          "--build-id=none", "-z",
      "noexecstack", "--threads=1",     "--no-mmap-output-file",
      "-o",          output.c_str(),    input.c_str()};
  std::string said;
  llvm::raw_string_ostream stream(said);
  const bool isLinked = lld::elf::link(arguments, stream, stream,
                                       /*exitEarly=*/false,
                                       /*disableOutput=*/false);
  lld::CommonLinkerContext::destroy();
  if (!isLinked)
    return fail(ErrorKind::Internal, "lld could not link a kernel: " + said);
  return {};
}

} // namespace

Result<std::vector<std::byte>>
linkSharedObject(const llvm::SmallVectorImpl<char> &object) {
  MGPU_TRY(checkSymbols(object));
  const Descriptor input(memfd_create("kernel.o", MFD_CLOEXEC));
  int ends[] = {-1, -1};
  const bool isPiped = pipe2(ends, O_CLOEXEC) == 0;
  const Descriptor from(ends[0]), to(ends[1]);
  const Descriptor isWritten(eventfd(0, EFD_CLOEXEC));
  const bool isOpen = isPiped && input.isOpen() && isWritten.isOpen();
  const int code =
      isOpen ? writeFully(input.get(), std::as_bytes(std::span(object)))
             : errno;
  if (code != 0)
    return fail(ErrorKind::Absent,
                std::string("a kernel cannot be put into memory to be linked "
                            "(") +
                    std::strerror(code) +
                    "): raise the limits on memory or open files");
  static std::mutex oneAtATime;
  const std::lock_guard<std::mutex> lock(oneAtATime);
  std::vector<std::byte> bytes;
  std::thread reader;
  try {
    reader = std::thread([&] { bytes = drain(from, isWritten); });
  } catch (const std::system_error &error) {
    return fail(ErrorKind::Absent,
                std::string("a kernel cannot be linked, as there is no thread "
                            "to read it: ") +
                    error.what());
  }
  const Result<void> linked = runLinker(input.path(), to.path());
  eventfd_write(isWritten.get(), 1);
  reader.join();
  MGPU_TRY(linked);
  if (bytes.empty())
    return fail(ErrorKind::Internal, "lld linked a kernel into nothing");
  return bytes;
}

} // namespace mgpu::kernels

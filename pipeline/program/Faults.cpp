// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/program/Faults.h"

#include "device/host/KernelObject.h"
#include "kernels/abi/HostKernelAbi.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <ucontext.h>
#include <unistd.h>

namespace mgpu::pipeline {

namespace {

/// The facts that a handler may read: nothing here changes after it is
/// installed.
struct FaultFacts {
  pid_t process = 0;
  std::string file;
  std::vector<std::pair<std::string, std::string>> places; ///< by kernel
};
FaultFacts faultFacts;

constexpr int faultSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
/// The handlers that were there before: the system's, or a sanitizer's.
struct sigaction faultsBefore[std::size(faultSignals)];

const struct sigaction &handlerBefore(int number) {
  for (size_t k = 0; k + 1 < std::size(faultSignals); ++k)
    if (faultSignals[k] == number)
      return faultsBefore[k];
  return faultsBefore[std::size(faultSignals) - 1];
}

/// Text for write(2) alone.
class Sentence {
public:
  Sentence &operator<<(const char *more) {
    const size_t length = std::min(std::strlen(more), sizeof text - used);
    std::memcpy(text + used, more, length);
    used += length;
    return *this;
  }
  Sentence &operator<<(uintptr_t address) {
    char digits[2 * sizeof address + 3] = "0x";
    size_t at = 2;
    for (int shift = 8 * int(sizeof address) - 4; shift >= 0; shift -= 4)
      if (address >> shift || shift == 0)
        digits[at++] = "0123456789abcdef"[(address >> shift) & 15];
    digits[at] = '\0';
    return *this << digits;
  }
  void print() {
    for (size_t done = 0; done < used;) {
      const ssize_t count = ::write(STDERR_FILENO, text + done, used - done);
      if (count <= 0)
        return;
      done += size_t(count);
    }
  }

private:
  char text[16 << 10];
  size_t used = 0;
};

/// The kernel that was running: at the fault, or where the function it was in
/// (memset, ...) returns to, which at its beginning lies on top of the stack.
const char *faultingKernel(const ucontext_t &state) {
#if defined(__x86_64__)
  const auto at = uintptr_t(state.uc_mcontext.gregs[REG_RIP]);
  const auto stack = uintptr_t(state.uc_mcontext.gregs[REG_RSP]);
  if (const char *kernel = device::kernelNameAt(at))
    return kernel;
  uintptr_t caller = 0;
  if (stack != 0 && stack % sizeof caller == 0)
    std::memcpy(&caller, reinterpret_cast<const void *>(stack), sizeof caller);
  return device::kernelNameAt(caller);
#else
  const auto at = uintptr_t(state.uc_mcontext.pc),
             caller = uintptr_t(state.uc_mcontext.regs[30]);
  const char *kernel = device::kernelNameAt(at);
  return kernel ? kernel : device::kernelNameAt(caller);
#endif
}

/// The sentence of a kernel that stopped by itself; null if it did not.
const char *sentenceOf(int number, const ucontext_t &state) {
#if defined(__x86_64__)
  if (number != SIGILL)
    return nullptr;
  auto at =
      reinterpret_cast<const unsigned char *>(state.uc_mcontext.gregs[REG_RIP]);
  for (unsigned char byte : kernels::hostKernelStop)
    if (*at++ != byte)
      return nullptr;
  return reinterpret_cast<const char *>(state.uc_mcontext.gregs[REG_RDI]);
#else
  return nullptr;
#endif
}

const char *nameOf(int number) {
  switch (number) {
  case SIGSEGV:
  case SIGBUS:
    return "a bad address";
  case SIGFPE:
    return "a division by zero";
  default:
    return "a bad instruction";
  }
}

void onFault(int number, siginfo_t *info, void *context) {
  const char *kernel =
      faultingKernel(*static_cast<const ucontext_t *>(context));
  const bool isWatched = !kernel && handlerBefore(number).sa_handler != SIG_DFL;
  // A worker's parent knows signals, and a sanitizer says more.
  if (getpid() != faultFacts.process || isWatched) {
    sigaction(number, &handlerBefore(number), nullptr);
    return; // to the same fault
  }
  static std::atomic_flag isTaken;
  while (isTaken.test_and_set()) // another thread ends the process
    pause();
  Sentence out;
  out << "mgpu-tune: error: ";
  if (!kernel) {
    out << "a fault of mgpu (" << nameOf(number) << ", "
        << uintptr_t(info->si_addr) << ") while '" << faultFacts.file.c_str()
        << "' ran: please report it\n";
    out.print();
    _exit(int(ErrorKind::Internal));
  }
  out << "'" << faultFacts.file.c_str() << "': kernel " << kernel;
  for (const auto &[name, place] : faultFacts.places)
    if (std::strcmp(name.c_str(), kernel) == 0)
      out << " (" << place.c_str() << ")";
  if (const char *sentence =
          sentenceOf(number, *static_cast<const ucontext_t *>(context))) {
    std::fflush(stdout); // it was in none of its own functions
    out << " " << sentence << "\n";
  } else if (number == SIGFPE)
    out << " divides a whole number by zero, or the least one by -1: guard the "
           "division\n";
  else if (number == SIGILL)
    out << " reaches an instruction that this processor does not have: choose "
           "another level by --cpu\n";
  else
    out << " reads or writes outside of its buffers, at address "
        << uintptr_t(info->si_addr) << ": check its indices\n";
  out.print();
  _exit(int(ErrorKind::Invalid));
}

} // namespace

void nameFaults(const LoadedProgram &program) {
  faultFacts.process = getpid();
  faultFacts.file = program.from.file;
  faultFacts.places.clear();
  for (const planner::KernelSpec &kernel : program.dag.kernels)
    faultFacts.places.push_back({kernel.name, kernel.location});
  // A kernel may have used up the stack it would run on.
  static char stack[64 << 10];
  stack_t other{};
  if (sigaltstack(nullptr, &other) == 0 && (other.ss_flags & SS_DISABLE)) {
    other = {stack, 0, sizeof stack};
    sigaltstack(&other, nullptr);
  }
  struct sigaction action {};
  action.sa_sigaction = onFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (size_t k = 0; k < std::size(faultSignals); ++k)
    sigaction(faultSignals[k], &action, &faultsBefore[k]);
}

} // namespace mgpu::pipeline

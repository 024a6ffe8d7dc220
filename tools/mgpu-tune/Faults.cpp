// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/Faults.h"

#include "device/host/KernelCode.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <ucontext.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MGPU_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MGPU_SANITIZED 1
#endif
#endif

namespace mgpu::tune {

namespace {

/// What a handler may read: nothing here changes after it is installed.
struct Facts {
  pid_t process = 0;
  std::string file;
  std::vector<std::pair<std::string, std::string>> places; ///< by kernel
};
Facts facts;

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
  char text[1024];
  size_t used = 0;
};

/// The kernel that was running: at the fault, or where the function it was in
/// (memset, ...) returns to, which at its beginning lies on top of the stack.
const char *kernelOf(const ucontext_t &state) {
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
  if (getpid() != facts.process) { // a worker, whose parent knows signals
    std::signal(number, SIG_DFL);
    return; // to the same fault
  }
  static std::atomic_flag isTaken;
  while (isTaken.test_and_set()) // another thread ends the process
    pause();
  const char *kernel = kernelOf(*static_cast<const ucontext_t *>(context));
  Sentence out;
  out << "mgpu-tune: error: ";
  if (!kernel) {
    out << "a fault of mgpu (" << nameOf(number) << ", "
        << uintptr_t(info->si_addr) << ") while '" << facts.file.c_str()
        << "' ran: please report it\n";
    out.print();
    _exit(int(ErrorKind::Internal));
  }
  out << "'" << facts.file.c_str() << "': kernel " << kernel;
  for (const auto &[name, place] : facts.places)
    if (std::strcmp(name.c_str(), kernel) == 0)
      out << " (" << place.c_str() << ")";
  if (number == SIGFPE)
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

void nameFaults([[maybe_unused]] const Program &program,
                [[maybe_unused]] const Options &options) {
#ifndef MGPU_SANITIZED
  facts.process = getpid();
  facts.file = options.file;
  facts.places.clear();
  for (const planner::KernelSpec &kernel : program.dag.kernels)
    facts.places.push_back({kernel.name, kernel.location});
  // A kernel may have used up the stack it would run on.
  static char stack[64 << 10];
  const stack_t other{stack, 0, sizeof stack};
  sigaltstack(&other, nullptr);
  struct sigaction action {};
  action.sa_sigaction = onFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL})
    sigaction(number, &action, nullptr);
#endif
}

} // namespace mgpu::tune

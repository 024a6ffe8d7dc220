// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/rehearsal/KernelTexts.h"

#include "tests/rehearsal/KernelPtx.h"

#include "kernels/abi/LaunchForm.h"
#include "support/FileIO.h"
#include "support/Sha256.h"
#include "tests/unit/cuda/CubinLength.h"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <regex>
#include <unistd.h>

namespace mgpu::rehearsal {

std::string folder() {
  const char *folder = std::getenv("MGPU_REHEARSAL");
  if (folder && *folder)
    return folder;
  std::fprintf(stderr, "this is a test double of CUDA's libraries, for "
                       "tests/rehearsal/rehearse.sh alone\n");
  std::_Exit(2);
}

std::string nameOf(std::span<const std::byte> cubin, const char *suffix) {
  return folder() + "/" + Sha256().add(cubin).hex() + suffix;
}

namespace {

/// MGPU_REHEARSAL_EXP: so many units in the last place exp is off by at most,
/// as a GPU's is. Here it is the host's otherwise, which hides what comparing
/// its bits would find on a GPU.
unsigned unitsOfExp() {
  const char *units = std::getenv("MGPU_REHEARSAL_EXP");
  return units ? unsigned(std::atoi(units)) : 0;
}

std::string offExp(unsigned units) {
  return "#define SHIM_EXP_UNITS " + std::to_string(units) + R"cpp(
static float shimOffExp(float x) {
  unsigned bits;
  memcpy(&bits, &x, 4);
  const int off = int((bits * 2654435761u >> 8) % (2 * SHIM_EXP_UNITS + 1));
  float value = expf(x);
  for (int k = SHIM_EXP_UNITS; k < off; ++k)
    value = nextafterf(value, INFINITY);
  for (int k = off; k < SHIM_EXP_UNITS; ++k)
    value = nextafterf(value, 0);
  return value;
}
#undef expf
#define expf shimOffExp
)cpp";
}

/// printf of kernels goes to the driver, which keeps it for a while.
std::string printing() {
  return R"cpp(#include <stdarg.h>
static void (*shimPrint)(const char *, size_t);
static int shimPrintf(const char *format, ...) {
  char text[4096];
  va_list values;
  va_start(values, format);
  const int length = vsnprintf(text, sizeof text, format, values);
  va_end(values);
  if (length > 0)
    shimPrint(text, std::min<size_t>(length, sizeof text - 1));
  return length;
}
extern "C" void shim_print(void (*print)(const char *, size_t)) {
  shimPrint = print;
}
#undef printf
#define printf shimPrintf
)cpp";
}

/// What is compiled: the text, and for each entry a function that takes
/// parameters as a launch has them.
std::string programOf(const std::string &text,
                      const std::vector<std::string> &entries) {
  constexpr size_t mostShared = 228 * 1024; // whole pages
  const bool isDynamic = text.find("mgpu_dynamic_shared") != std::string::npos;
  // Threads that never meet need no stacks of their own.
  const bool meets = std::regex_search(
      text, std::regex("__sync|__shfl|\\bmma[A-Z]|\\bloadTiles|\\bloadFewTiles|"
                       "\\bawait|mgpu_dynamic_"
                       "shared|__shared__"));
  std::string out = "#include \"CudaShim.h\"\n#include <signal.h>\n"
                    "#include <sys/mman.h>\n#include <utility>\n"
                    "#undef __shared__\n#define __shared__\n" +
                    printing() + (unitsOfExp() ? offExp(unitsOfExp()) : "") +
                    text + "\n#line 1 \"adapters\"\n";
  std::vector<std::string> spaces{""};
  const std::regex space("namespace (mgpu_batch_\\d+) \\{");
  for (std::sregex_iterator at(text.begin(), text.end(), space), end; at != end;
       ++at)
    spaces.push_back((*at)[1]);
  // What an entry declares in itself is C's, as the entry is, and one object in
  // all spaces.
  const bool isC = std::regex_search(text, std::regex("\n +extern __shared__"));
  if (isDynamic)
    for (const std::string &each : spaces)
      out += (each.empty() ? "" : "namespace " + each + " {\n") + "extern \"" +
             (isC ? "C" : "C++") + "\" {\n" +
             (isC && each != spaces.front() ? "extern " : "") +
             "unsigned char mgpu_dynamic_shared[" + std::to_string(mostShared) +
             "] __attribute__((aligned(4096)));\n}\n" +
             (each.empty() ? "" : "}\n");
  out += R"cpp(
static void **shimParameters;
template <class T> static T shimParameter(size_t k) {
  alignas(T) unsigned char bytes[sizeof(T)];
  memcpy(bytes, shimParameters[k], sizeof(T));
  return *(T *)bytes;
}
template <auto Entry, class... A, size_t... K>
static void shimCall(void (*)(A...), std::index_sequence<K...>) {
  Entry(shimParameter<std::remove_cv_t<A>>(K)...);
}
template <auto Entry, class... A> static void shimRun(void (*as)(A...)) {
  shimCall<Entry>(as, std::index_sequence_for<A...>());
}
// A launch has `asked` bytes of the memory: pages behind them fault, and what is left of the last one has a pattern that no one writes.
static struct {
  unsigned char *memory;
  size_t all, asked;
} shimLimits;
static bool shimLimitShared(unsigned char *memory, size_t all, size_t asked) {
  shimLimits = {memory, all, asked};
  const size_t page = 4096, end = (asked + page - 1) / page * page;
  const unsigned char pattern = 0xfb;
  mprotect(memory, all, PROT_READ | PROT_WRITE);
  bool isIntact = true;
  for (size_t k = asked; k < end; ++k)
    isIntact &= memory[k] == pattern;
  memset(memory + asked, pattern, end - asked);
  mprotect(memory + end, all - end, PROT_NONE);
  return isIntact;
}
template <auto Entry> static void shimBodyOf() { shimRun<Entry>(Entry); }
template <class... A> static const size_t *shimSizes(void (*)(A...)) {
  static const size_t sizes[] = {sizeof(A)..., 0};
  return sizes;
}
static void shimPlain(ShimIndex grid, ShimIndex block, void (*body)()) {
  blockDim = block;
  gridDim = grid;
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) {
        blockIdx = {x, y, z};
        for (unsigned tz = 0; tz < block.z; ++tz)
          for (unsigned ty = 0; ty < block.y; ++ty)
            for (unsigned tx = 0; tx < block.x; ++tx) {
              threadIdx = {tx, ty, tz};
              body();
            }
      }
}
// What a kernel follows may be of this library, too.
static void (*shimAwaitOthers)();
static void shimAwaitHere() {
  void **mine = shimParameters;
  const auto limits = shimLimits;
  shimAwaitOthers();
  shimParameters = mine;
  if (limits.memory)
    shimLimitShared(limits.memory, limits.all, limits.asked);
}
extern "C" void shim_await(void (*others)()) {
  shimAwaitOthers = others;
  shimOnAwait = shimAwaitHere;
}
)cpp";
  for (const std::string &entry : entries) {
    std::smatch found;
    std::string in;
    if (std::regex_search(
            text, found,
            std::regex("__global__[^;{]*\\b" + entry + "\\s*\\("))) {
      const std::string before = text.substr(0, size_t(found.position()));
      for (std::sregex_iterator at(before.begin(), before.end(), space), end;
           at != end; ++at)
        in = std::string((*at)[1]) + "::";
    }
    out += "extern \"C\" const size_t *shim_sizes_" + entry +
           "() { return shimSizes(" + in + entry + "); }\n" +
           "extern \"C\" void shim_" + entry +
           "(void **parameters, const unsigned *grid, const unsigned *block, "
           "unsigned sharedBytes) {\n"
           "  shimParameters = parameters;\n  shimHasAwaited = false;\n";
    const std::string limit = "shimLimitShared(" + in +
                              "mgpu_dynamic_shared, " +
                              std::to_string(mostShared) + ", sharedBytes)";
    if (isDynamic)
      out += "  shimShared = " + in + "mgpu_dynamic_shared;\n" +
             "  shimSharedBytes = sharedBytes;\n  " + limit + ";\n";
    out += std::string("  ") + (meets ? "shimLaunch" : "shimPlain") +
           "({grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, "
           "shimBodyOf<" +
           in + entry + ">);\n" +
           (isDynamic ? "  if (!" + limit + ")\n    raise(SIGSEGV);\n" : "") +
           "}\n";
  }
  return out;
}

/// Compiles once for all processes; several may do so at the same time.
bool compile(const std::string &program, const std::string &library) {
  if (access(library.c_str(), R_OK) == 0)
    return true;
  const std::string own = library + "." + std::to_string(getpid());
  if (!writeFileAtomic(own + ".cpp", program))
    return false;
  const std::string command =
      MGPU_SHIM_CXX
      " -std=c++17 -O1 -fsanitize=alignment "
      "-fsanitize-trap=alignment -ffp-contract=off -w -shared -fPIC "
      "-I" MGPU_SHIM_INCLUDE " " +
      own + ".cpp -o " + own + ".so";
  // The compiler is not to find the double's own libraries.
  const std::string clean = "env -u LD_LIBRARY_PATH " + command;
  if (std::system(clean.c_str()) != 0) {
    std::fprintf(stderr, "rehearsal: %s failed; its input is kept\n",
                 command.c_str());
    return false;
  }
  return std::rename((own + ".so").c_str(), library.c_str()) == 0;
}

// One kernel at a time. One that faults, or goes on for longer than any kernel
// of the rehearsal takes on a busy machine, is left by a jump out of the
// signal.
constexpr itimerspec limitOfKernels{{}, {5, 0}};
sigjmp_buf beforeLaunch;
CUresult lastFault = CUDA_SUCCESS;

void onSignal(int signal) { siglongjmp(beforeLaunch, signal); }

/// A timer whose signal is this thread's.
timer_t timerOfThread() {
  static thread_local timer_t timer = [] {
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGRTMIN;
    event._sigev_un._tid = gettid();
    timer_t made = nullptr;
    if (timer_create(CLOCK_MONOTONIC, &event, &made) != 0)
      std::abort();
    return made;
  }();
  return timer;
}

using Call = void (*)(void **, const unsigned *, const unsigned *, unsigned);

void runApart(Call call, void **parameters, const unsigned *grid,
              const unsigned *block) {
  struct sigaction action {
  }, beforeFault{}, beforeTrap{}, beforeTimer{};
  action.sa_handler = onSignal;
  action.sa_flags = SA_NODEFER;
  sigaction(SIGSEGV, &action, &beforeFault);
  sigaction(SIGILL, &action, &beforeTrap);
  sigaction(SIGRTMIN, &action, &beforeTimer);
  const itimerspec none{};
  lastFault = CUDA_SUCCESS;
  const int signal = sigsetjmp(beforeLaunch, 1);
  if (signal == 0) {
    timer_settime(timerOfThread(), 0, &limitOfKernels, nullptr);
    call(parameters, grid, block,
         fake::FakeCuda::instance().dynamicSharedBytes);
  } else if (signal == SIGSEGV) {
    lastFault = CUDA_ERROR_ILLEGAL_ADDRESS;
  } else if (signal == SIGILL) { // an access wider than its address is aligned
    lastFault = CUDA_ERROR_MISALIGNED_ADDRESS;
  } else {
    fake::FakeCuda::instance().neverEnds = true;
  }
  timer_settime(timerOfThread(), 0, &none, nullptr);
  sigaction(SIGSEGV, &beforeFault, nullptr);
  sigaction(SIGILL, &beforeTrap, nullptr);
  sigaction(SIGRTMIN, &beforeTimer, nullptr);
}

CUresult faultOf() { return lastFault; }

/// What a driver holds a launch to, as the cubin says it.
void takeLimits(const kernels::CubinEntry &entry, fake::FakeKernel &kernel) {
  constexpr uint32_t reserved = 1024; // of CUDA's own, a part of the section
  kernel.sharedBytes = int(std::max(entry.sharedBytes, reserved) - reserved);
  if (entry.maxThreads > 0)
    kernel.maxThreads = int(std::min(entry.maxThreads, 1024u));
  kernels::LaunchForm form;
  if (entry.launchForm.size() * sizeof(uint32_t) == sizeof form) {
    std::memcpy(static_cast<void *>(&form), entry.launchForm.data(),
                sizeof form);
    std::ranges::copy(
        std::array{form.cluster.x, form.cluster.y, form.cluster.z},
        kernel.cluster);
  }
}

/// What the kernel that runs waits for runs in its middle.
void awaitOthers() {
  sigjmp_buf mine;
  std::memcpy(&mine, &beforeLaunch, sizeof mine);
  fake::FakeCuda::instance().awaitGrids();
  std::memcpy(&beforeLaunch, &mine, sizeof mine);
  timer_settime(timerOfThread(), 0, &limitOfKernels, nullptr);
}

/// Tensor maps, copies in bulk and products of warpgroups are PTX alone; with
/// MGPU_REHEARSAL_PTX set all kernels run by it.
bool runsByPtx(const std::string &text) {
  return text.find("MgpuTensorMap") != std::string::npos ||
         std::getenv("MGPU_REHEARSAL_PTX");
}

} // namespace

std::map<std::string, fake::FakeKernel> kernelsOf(const void *code) {
  const std::span<const std::byte> cubin = fake::wholeCubin(code);
  if (cubin.empty())
    return {};
  const kernels::Cubin about = kernels::readCubin(cubin);
  std::vector<std::string> entries;
  for (auto &[name, entry] : about.entries)
    entries.push_back(name);
  // The target's own have twins already.
  const auto &known = fake::FakeCuda::instance().kernels;
  if (std::all_of(entries.begin(), entries.end(), [&](const std::string &name) {
        return known.contains(name);
      })) {
    std::map<std::string, fake::FakeKernel> out;
    for (const std::string &name : entries)
      out[name] = known.at(name);
    return out;
  }
  const std::string text = nameOf(cubin, ".cu"),
                    library = nameOf(
                        cubin,
                        ("-" + std::to_string(unitsOfExp()) + ".so").c_str());
  constexpr uint64_t limit = 64 << 20;
  Result<std::string> source = readText(text, limit);
  if (!source) {
    std::fprintf(
        stderr, "rehearsal: a cubin of %zu bytes whose text is not known: %s\n",
        cubin.size(), source.error().message.c_str());
    return {};
  }
  std::map<std::string, fake::FakeKernel> out;
  if (runsByPtx(*source)) {
    Result<std::string> ptx = readText(nameOf(cubin, ".ptx"), limit);
    auto kernels = ptx ? kernelsOfPtx(std::move(*ptx), entries)
                       : tl::unexpected(ptx.error());
    if (!kernels) {
      std::fprintf(stderr, "rehearsal: %s\n", kernels.error().message.c_str());
      return {};
    }
    out = std::move(*kernels);
    for (auto &[name, kernel] : out)
      takeLimits(about.entries.at(name), kernel);
    return out;
  }
  if (!compile(programOf(*source, entries), library))
    return {};
  void *handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    std::fprintf(stderr, "rehearsal: %s\n", dlerror());
    return {};
  }
  reinterpret_cast<void (*)(void (*)())>(dlsym(handle, "shim_await"))(
      awaitOthers);
  reinterpret_cast<void (*)(void (*)(const char *, size_t))>(
      dlsym(handle, "shim_print"))([](const char *text, size_t length) {
    fake::FakeCuda::instance().print({text, length});
  });
  for (const std::string &name : entries) {
    fake::FakeKernel &kernel = out[name];
    auto sizes = reinterpret_cast<const size_t *(*)()>(
        dlsym(handle, ("shim_sizes_" + name).c_str()));
    auto call = reinterpret_cast<Call>(dlsym(handle, ("shim_" + name).c_str()));
    if (!sizes || !call) {
      std::fprintf(stderr, "rehearsal: %s has no %s: it is of another build\n",
                   library.c_str(), name.c_str());
      return {};
    }
    for (const size_t *size = sizes(); *size; ++size)
      kernel.parameterSizes.push_back(*size);
    kernel.run = [call](void **parameters, const unsigned *grid,
                        const unsigned *block) {
      runApart(call, parameters, grid, block);
    };
    kernel.fault = faultOf;
    takeLimits(about.entries.at(name), kernel);
  }
  return out;
}

} // namespace mgpu::rehearsal

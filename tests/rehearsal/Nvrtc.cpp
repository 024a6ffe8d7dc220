// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libnvrtc.so.13 in front of the real one: keeps the text of each cubin, with
// its macros, and its PTX under the cubin's SHA-256 in MGPU_REHEARSAL, where
// the double of the driver finds it (KernelTexts.h). Compiling makes the
// process one that has called cuInit(), as the real one does.
#include "support/FileIO.h"
#include "tests/rehearsal/Exports.h"
#include "tests/rehearsal/KernelTexts.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <mutex>

using namespace mgpu;

// The types of nvrtc.h, which only kernels/compile includes.
using Program = void *;
constexpr int success = 0;

MGPU_REHEARSAL_EXPORT(nvrtcGetErrorString)
MGPU_REHEARSAL_EXPORT(nvrtcVersion)
MGPU_REHEARSAL_EXPORT(nvrtcGetNumSupportedArchs)
MGPU_REHEARSAL_EXPORT(nvrtcGetSupportedArchs)
MGPU_REHEARSAL_EXPORT(nvrtcDestroyProgram)
MGPU_REHEARSAL_EXPORT(nvrtcGetCUBINSize)
MGPU_REHEARSAL_EXPORT(nvrtcGetPTXSize)
MGPU_REHEARSAL_EXPORT(nvrtcGetPTX)
MGPU_REHEARSAL_EXPORT(nvrtcGetProgramLogSize)
MGPU_REHEARSAL_EXPORT(nvrtcGetProgramLog)
MGPU_REHEARSAL_EXPORT(nvrtcSetFlowCallback)

namespace {

int (*realCreate)(Program *, const char *, const char *, int,
                  const char *const *, const char *const *);
int (*realCompile)(Program, int, const char *const *);
int (*realCubin)(Program, char *);
int (*realSize)(Program, size_t *);
int (*realPtx)(Program, char *);
int (*realPtxSize)(Program, size_t *);

std::mutex mutex;
struct Text {
  std::string source, macros;
};
std::map<Program, Text> texts;

__attribute__((constructor)) void start() {
  const char *home = std::getenv("CUDA_HOME");
  const std::string path =
      std::string(home && *home ? home : "/usr/local/cuda") +
      "/lib64/libnvrtc.so.13";
  void *real = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!real) {
    std::fprintf(stderr, "rehearsal: no NVRTC: %s\n", dlerror());
    std::_Exit(2);
  }
#define MGPU_REAL(symbol) MGPU_REHEARSAL_SET(symbol, dlsym(real, #symbol))
  MGPU_REAL(nvrtcGetErrorString)
  MGPU_REAL(nvrtcVersion)
  MGPU_REAL(nvrtcGetNumSupportedArchs)
  MGPU_REAL(nvrtcGetSupportedArchs)
  MGPU_REAL(nvrtcDestroyProgram)
  MGPU_REAL(nvrtcGetCUBINSize)
  MGPU_REAL(nvrtcGetPTXSize)
  MGPU_REAL(nvrtcGetPTX)
  MGPU_REAL(nvrtcGetProgramLogSize)
  MGPU_REAL(nvrtcGetProgramLog)
  MGPU_REAL(nvrtcSetFlowCallback)
  auto take = [&](const char *name, auto &into) {
    into = reinterpret_cast<std::decay_t<decltype(into)>>(dlsym(real, name));
  };
  take("nvrtcCreateProgram", realCreate);
  take("nvrtcCompileProgram", realCompile);
  take("nvrtcGetCUBIN", realCubin);
  take("nvrtcGetCUBINSize", realSize);
  take("nvrtcGetPTX", realPtx);
  take("nvrtcGetPTXSize", realPtxSize);
}

} // namespace

#define MGPU_ENTRY extern "C" __attribute__((visibility("default"))) int

MGPU_ENTRY nvrtcCreateProgram(Program *program, const char *source,
                              const char *name, int numHeaders,
                              const char *const *headers,
                              const char *const *includeNames) {
  int code =
      realCreate(program, source, name, numHeaders, headers, includeNames);
  if (code == success) {
    std::lock_guard<std::mutex> lock(mutex);
    texts[*program] = {source, ""};
  }
  return code;
}

MGPU_ENTRY nvrtcCompileProgram(Program program, int count,
                               const char *const *options) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    for (int k = 0; k < count; ++k) {
      const std::string option = options[k];
      if (option.starts_with("-D"))
        texts[program].macros += "#define " +
                                 option.substr(2, option.find('=') - 2) + " " +
                                 (option.find('=') == std::string::npos
                                      ? "1"
                                      : option.substr(option.find('=') + 1)) +
                                 "\n";
    }
  }
  // The real one does so: it opens libcuda and calls cuInit().
  if (void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL))
    if (auto initialize =
            reinterpret_cast<void (*)()>(dlsym(driver, "mgpuDoubleInitialize")))
      initialize();
  return realCompile(program, count, options);
}

MGPU_ENTRY nvrtcGetCUBIN(Program program, char *cubin) {
  const int code = realCubin(program, cubin);
  size_t size = 0;
  if (code != success || realSize(program, &size) != success)
    return code;
  std::lock_guard<std::mutex> lock(mutex);
  const Text &text = texts[program];
  const auto *bytes = reinterpret_cast<const std::byte *>(cubin);
  auto keep = [&](const char *suffix, const std::string &what) {
    const auto kept =
        writeFileAtomic(rehearsal::nameOf({bytes, size}, suffix), what);
    if (!kept)
      std::fprintf(stderr, "rehearsal: %s\n", kept.error().message.c_str());
  };
  keep(".cu", text.macros + text.source);
  size_t length = 0;
  if (realPtxSize(program, &length) != success || length == 0)
    return code;
  std::string ptx(length, '\0');
  if (realPtx(program, ptx.data()) == success)
    keep(".ptx", ptx.substr(0, length - 1));
  return code;
}

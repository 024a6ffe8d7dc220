// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/NvrtcLibrary.h"

#include "support/SharedLibrary.h"

#include <nvrtc.h>

#include <dlfcn.h>

namespace mgpu::kernels {

NvrtcLibrary::~NvrtcLibrary() = default;

namespace {

/// NVRTC's callback; it is C, so `cancel` must not throw.
int askWhetherToCancel(void *payload, void *) {
  return (*static_cast<const std::function<bool()> *>(payload))() ? 1 : 0;
}

class OpenedNvrtc final : public NvrtcLibrary {
public:
  explicit OpenedNvrtc(void *handle) : handle(handle) {}
  // Not closed: NVRTC keeps threads and tables of its own.

  Result<void> resolve();
  Result<Output> compile(const std::string &source, const std::string &name,
                         const std::vector<std::string> &options,
                         const std::function<bool()> &cancel) const override;

private:
  template <typename Function>
  bool load(Function *&into, const char *symbol) {
    into = reinterpret_cast<Function *>(dlsym(handle, symbol));
    return into != nullptr;
  }
  tl::unexpected<Error> failed(const char *call, nvrtcResult code) const {
    return fail(ErrorKind::Absent, std::string(call) + " of '" + path +
                                       "' failed: " + errorString(code));
  }

  void *handle;
  decltype(nvrtcGetErrorString) *errorString = nullptr;
  decltype(nvrtcVersion) *version = nullptr;
  decltype(nvrtcGetNumSupportedArchs) *numArchs = nullptr;
  decltype(nvrtcGetSupportedArchs) *archs = nullptr;
  decltype(nvrtcCreateProgram) *create = nullptr;
  decltype(nvrtcDestroyProgram) *destroy = nullptr;
  decltype(nvrtcCompileProgram) *compileProgram = nullptr;
  decltype(nvrtcGetCUBINSize) *cubinSize = nullptr;
  decltype(nvrtcGetCUBIN) *cubin = nullptr;
  decltype(nvrtcGetPTXSize) *ptxSize = nullptr;
  decltype(nvrtcGetPTX) *ptx = nullptr;
  decltype(nvrtcGetProgramLogSize) *logSize = nullptr;
  decltype(nvrtcGetProgramLog) *log = nullptr;
  /// Since 12.8; null before. Its type is written out so that older headers do.
  nvrtcResult (*setFlowCallback)(nvrtcProgram, int (*)(void *, void *),
                                 void *) = nullptr;
};

constexpr const char *whatToInstall =
    "install NVRTC (package cuda-nvrtc-13-0, or `pip install "
    "nvidia-cuda-nvrtc`) or set CUDA_HOME to the toolkit";

Result<void> OpenedNvrtc::resolve() {
  if (!load(errorString, "nvrtcGetErrorString") ||
      !load(version, "nvrtcVersion") ||
      !load(numArchs, "nvrtcGetNumSupportedArchs") ||
      !load(archs, "nvrtcGetSupportedArchs") ||
      !load(create, "nvrtcCreateProgram") ||
      !load(destroy, "nvrtcDestroyProgram") ||
      !load(compileProgram, "nvrtcCompileProgram") ||
      !load(cubinSize, "nvrtcGetCUBINSize") || !load(cubin, "nvrtcGetCUBIN") ||
      !load(ptxSize, "nvrtcGetPTXSize") || !load(ptx, "nvrtcGetPTX") ||
      !load(logSize, "nvrtcGetProgramLogSize") ||
      !load(log, "nvrtcGetProgramLog"))
    return fail(ErrorKind::Absent, "cannot compile CUDA kernels: '" + path +
                                       "' is not an NVRTC of CUDA 12 or 13 (" +
                                       dlerror() + "); " + whatToInstall);
  setFlowCallback = reinterpret_cast<decltype(setFlowCallback)>(
      dlsym(handle, "nvrtcSetFlowCallback"));
  if (nvrtcResult code = version(&major, &minor); code != NVRTC_SUCCESS)
    return failed("nvrtcVersion", code);
  int count = 0;
  if (nvrtcResult code = numArchs(&count); code != NVRTC_SUCCESS || count < 0)
    return failed("nvrtcGetNumSupportedArchs", code);
  architectures.resize(size_t(count));
  if (nvrtcResult code = archs(architectures.data()); code != NVRTC_SUCCESS)
    return failed("nvrtcGetSupportedArchs", code);
  return {};
}

Result<NvrtcLibrary::Output>
OpenedNvrtc::compile(const std::string &source, const std::string &name,
                     const std::vector<std::string> &options,
                     const std::function<bool()> &cancel) const {
  nvrtcProgram program = nullptr;
  if (nvrtcResult code =
          create(&program, source.c_str(), name.c_str(), 0, nullptr, nullptr);
      code != NVRTC_SUCCESS)
    return failed("nvrtcCreateProgram", code);
  struct Guard {
    decltype(nvrtcDestroyProgram) *destroy;
    nvrtcProgram *program;
    ~Guard() { destroy(program); }
  } guard{destroy, &program};
  if (cancel && setFlowCallback)
    setFlowCallback(program, askWhetherToCancel,
                    const_cast<std::function<bool()> *>(&cancel));
  std::vector<const char *> words;
  for (const std::string &option : options)
    words.push_back(option.c_str());
  Output output;
  nvrtcResult code = compileProgram(program, int(words.size()), words.data());
  size_t size = 0;
  if (logSize(program, &size) == NVRTC_SUCCESS && size > 1) {
    output.log.resize(size);
    if (log(program, output.log.data()) != NVRTC_SUCCESS)
      output.log.clear();
    output.log.resize(output.log.find_last_not_of('\0') + 1);
  }
  output.cancelled = code != NVRTC_SUCCESS && cancel && cancel();
  if (output.cancelled || code == NVRTC_ERROR_COMPILATION ||
      code == NVRTC_ERROR_INVALID_OPTION)
    return output;
  if (code != NVRTC_SUCCESS)
    return failed("nvrtcCompileProgram", code);
  if (nvrtcResult asked = cubinSize(program, &size); asked != NVRTC_SUCCESS)
    return failed("nvrtcGetCUBINSize", asked);
  output.cubin.resize(size);
  if (nvrtcResult got =
          cubin(program, reinterpret_cast<char *>(output.cubin.data()));
      got != NVRTC_SUCCESS)
    return failed("nvrtcGetCUBIN", got);
  if (ptxSize(program, &size) == NVRTC_SUCCESS && size > 1) {
    output.ptx.resize(size);
    if (ptx(program, output.ptx.data()) != NVRTC_SUCCESS)
      output.ptx.clear();
    output.ptx.resize(output.ptx.find_last_not_of('\0') + 1);
  }
  output.ok = true;
  return output;
}

} // namespace

Result<std::unique_ptr<NvrtcLibrary>>
NvrtcLibrary::open(const std::string &given) {
  SharedLibrary found =
      given.empty()
          ? openToolkitLibrary(
                {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
          : SharedLibrary{dlopen(given.c_str(), RTLD_NOW | RTLD_LOCAL), given};
  if (found.handle) {
    auto library = std::make_unique<OpenedNvrtc>(found.handle);
    library->path = found.path;
    MGPU_TRY(library->resolve());
    return std::unique_ptr<NvrtcLibrary>(std::move(library));
  }
  return fail(ErrorKind::Absent,
              "cannot compile CUDA kernels: " +
                  (given.empty() ? "no libnvrtc.so.13 or .12 on the library "
                                   "path or in /usr/local/cuda/lib64"
                                 : "cannot open '" + given + "'") +
                  "; " + whatToInstall);
}

} // namespace mgpu::kernels

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_COMPILE_NVRTCLIBRARY_H
#define MGPU_KERNELS_COMPILE_NVRTCLIBRARY_H

// NVRTC as it is on this machine, opened at run time and never linked. The
// one file that includes nvrtc.h is NvrtcLibrary.cpp; NoNvrtc.cpp stands in
// for it where the toolkit's headers were not there to build with.

#include "support/Result.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace mgpu::kernels {

class NvrtcLibrary {
public:
  /// Opens libnvrtc: `path` if given, else the loader's, then those of
  /// $CUDA_HOME, $CUDA_PATH and /usr/local/cuda. Absent, with what to install,
  /// if there is none.
  static Result<std::unique_ptr<NvrtcLibrary>> open(const std::string &path);
  virtual ~NvrtcLibrary();

  int major = 0, minor = 0;       ///< of NVRTC
  std::vector<int> architectures; ///< 75, 80, ..., ascending
  std::string path;               ///< what was opened

  struct Output {
    std::vector<std::byte> cubin; ///< empty unless `ok`
    std::string ptx;              ///< of which the cubin was made
    std::string log;
    bool ok = false;
    bool cancelled = false;
  };
  /// Compiles to a cubin. `cancel`, which may be empty, is asked from time to
  /// time on any thread and stops the compilation once it says true; it must
  /// then go on saying so. Thread-safe. An error of the source is an Output
  /// that is not `ok`; an error of NVRTC itself is an Error.
  virtual Result<Output> compile(const std::string &source,
                                 const std::string &name,
                                 const std::vector<std::string> &options,
                                 const std::function<bool()> &cancel) const = 0;
};

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_COMPILE_NVRTCLIBRARY_H

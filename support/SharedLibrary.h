// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_SHAREDLIBRARY_H
#define MGPU_SUPPORT_SHAREDLIBRARY_H

// Libraries of the CUDA toolkit, found when they are needed.

#include <dlfcn.h>
#include <string>
#include <vector>

namespace mgpu {

struct SharedLibrary {
  void *handle = nullptr; ///< of dlopen; null: not found
  std::string path;       ///< where it was found
};

/// Opens the first of `names` that exists: each where the loader looks, then in
/// the toolkits of CUDA_HOME, CUDA_PATH and /usr/local/cuda. Its symbols stay
/// its own (RTLD_LOCAL).
SharedLibrary openToolkitLibrary(const std::vector<std::string> &names);

/// Takes functions of a library one by one.
class EntryPoints {
public:
  explicit EntryPoints(void *library) : library(library) {}

  /// The function `symbol`; null where there is none.
  template <typename Function>
  void take(const char *symbol, Function *&into) {
    into = reinterpret_cast<Function *>(dlsym(library, symbol));
    if (!into && missing.empty())
      missing = symbol;
  }

  std::string missing; ///< the first that was not there, or ""

private:
  void *library;
};

} // namespace mgpu

#endif // MGPU_SUPPORT_SHAREDLIBRARY_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_SHAREDLIBRARY_H
#define MGPU_SUPPORT_SHAREDLIBRARY_H

// Libraries of the CUDA toolkit, found when they are needed.

#include "support/Result.h"

#include <dlfcn.h>
#include <memory>
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

/// A table of a library's functions, which is never closed again: `take` takes
/// them. Absent, with `absent`, where no library of `names` is, and with
/// `install` where it lacks a function.
template <typename Api>
Result<std::shared_ptr<const Api>>
openToolkitApi(const std::vector<std::string> &names, std::string absent,
               const char *install, void (*take)(EntryPoints &, Api &)) {
  const SharedLibrary library = openToolkitLibrary(names);
  if (!library.handle)
    return fail(ErrorKind::Absent, std::move(absent));
  auto api = std::make_shared<Api>();
  EntryPoints entries(library.handle);
  take(entries, *api);
  if (!entries.missing.empty())
    return fail(ErrorKind::Absent,
                library.path + " has no " + entries.missing + ": " + install);
  return std::shared_ptr<const Api>(std::move(api));
}

} // namespace mgpu

#endif // MGPU_SUPPORT_SHAREDLIBRARY_H

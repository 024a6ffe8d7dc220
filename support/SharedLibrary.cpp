// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/SharedLibrary.h"

#include <cstdlib>
#include <dlfcn.h>
#include <link.h>

namespace mgpu {

/// Where the loader found it.
static std::string pathOf(void *handle, const std::string &name) {
  link_map *map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !map || !*map->l_name)
    return name;
  return map->l_name;
}

SharedLibrary openToolkitLibrary(const std::vector<std::string> &names) {
  std::vector<std::string> folders{""};
  auto addToolkit = [&](const std::string &home) {
    // The toolkit keeps CUPTI apart from its other libraries.
    for (const char *inside : {"/lib64/", "/extras/CUPTI/lib64/"})
      folders.push_back(home + inside);
  };
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *home = std::getenv(variable); home && *home)
      addToolkit(home);
  addToolkit("/usr/local/cuda");
  for (const std::string &folder : folders)
    for (const std::string &name : names)
      if (void *handle = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL))
        return {handle, pathOf(handle, folder + name)};
  return {};
}

} // namespace mgpu

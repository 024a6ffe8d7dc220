// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Assert.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace mgpu {

void assertFailed(const char *condition, const char *file, int line,
                  const char *sentence) {
  // Paths are told from the repository's root on.
  std::string_view path = file, root = __FILE__;
  root.remove_suffix(std::string_view("support/Assert.cpp").size());
  if (path.starts_with(root))
    path.remove_prefix(root.size());
  std::fprintf(stderr,
               "%.*s:%d: `%s` does not hold: %s. This is a bug of mgpu; please "
               "report it.\n",
               int(path.size()), path.data(), line, condition, sentence);
  std::abort();
}

} // namespace mgpu

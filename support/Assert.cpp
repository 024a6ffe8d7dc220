// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Assert.h"

#include <cstdio>
#include <cstdlib>

namespace mgpu {

void assertFailed(const char *condition, const char *file, int line,
                  const char *sentence) {
  std::fprintf(stderr,
               "%s:%d: `%s` does not hold: %s. This is a bug of mgpu; please "
               "report it.\n",
               file, line, condition, sentence);
  std::abort();
}

} // namespace mgpu

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_CONFORMANCE_EXAMPLES_H
#define MGPU_TESTS_CONFORMANCE_EXAMPLES_H

#include "support/FileIO.h"
#include "tests/conformance/Import.h"

#include <ostream>

namespace mgpu::conformance {

struct Example {
  const char *name, *entry;
  std::map<std::string, std::string> scalars;
};

/// Else the name of each test would hold the addresses of this run.
inline void PrintTo(const Example &shown, std::ostream *os) {
  *os << shown.name;
}

inline std::vector<Example> examples() {
  return {Example{"saxpy", "main", {{"a", "2.5"}}},
          Example{"heat", "main", {}},
          Example{"mandelbrot", "main", {}},
          Example{"mlp", "main", {}},
          Example{"ops", "main", {}},
          Example{"digits", "main", {{"rate", "0.5"}}},
          Example{"digits", "eval", {}}};
}

inline Result<planner::Dag> importExample(const Example &example) {
  std::string path = std::string(MGPU_EXAMPLES) + "/" + example.name + "/" +
                     example.name + ".mlir";
  auto file = readFile(path);
  if (!file)
    return fail(file.error());
  ImportRequest request;
  request.text.assign(reinterpret_cast<const char *>(file->data()),
                      file->size());
  request.name = path;
  request.entry = example.entry;
  request.scalars = example.scalars;
  request.racesAreErrors = true;
  return Importer().import(request).dag;
}

} // namespace mgpu::conformance

#endif // MGPU_TESTS_CONFORMANCE_EXAMPLES_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/conformance/ExampleProgram.h"

#include "support/FileIO.h"
#include "tests/conformance/Import.h"

namespace mgpu::conformance {

void PrintTo(const Example &shown, std::ostream *os) { *os << shown.name; }

std::vector<Example> allExamples() {
  return {{"saxpy", "main", {{"a", "2.5"}}},
          {"heat", "main", {}},
          {"mandelbrot", "main", {}},
          {"mlp", "main", {}},
          {"ops", "main", {}},
          {"attention", "main", {}},
          {"digits", "main", {{"rate", "0.5"}}},
          {"digits", "eval", {}}};
}

std::string exampleName(const testing::TestParamInfo<Example> &info) {
  return std::string(info.param.name) + "_" + info.param.entry;
}

ImportOutcome importExample(const Example &example) {
  std::string path = std::string(MGPU_EXAMPLES) + "/" + example.name + "/" +
                     example.name + ".mlir";
  auto file = readFile(path);
  if (!file)
    return {fail(file.error()), {}, {}, 0, {}};
  ImportRequest request;
  request.text.assign(reinterpret_cast<const char *>(file->data()),
                      file->size());
  request.name = path;
  request.entry = example.entry;
  request.scalars = example.scalars;
  request.racesAreErrors = true;
  return Importer().import(request);
}

} // namespace mgpu::conformance

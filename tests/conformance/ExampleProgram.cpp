// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/conformance/ExampleProgram.h"

#include "support/FileIO.h"
#include "tests/conformance/Import.h"

#include <algorithm>

namespace mgpu::conformance {

void PrintTo(const Example &shown, std::ostream *os) { *os << shown.name; }

std::vector<Example> allExamples() {
  return {{"saxpy", "main", {{"a", "2.5"}}},
          {"heat", "main", {}},
          {"mandelbrot", "main", {}},
          {"mlp", "main", {}},
          {"ops", "main", {}},
          {"exchange", "main", {}},
          {"attention", "main", {}},
          {"tensor/attention", "main", {}},
          {"tensor/data-parallel", "main", {{"rate", "0.5"}}},
          {"tensor/tensor-parallel", "main", {{"rate", "0.5"}}},
          {"tensor/fully-sharded", "main", {{"rate", "0.5"}}},
          {"tensor/pipeline", "main", {}},
          {"mpmd/training", "main", {}},
          {"shard/jacobi", "main", {}},
          {"shard/training", "main", {{"rate", "0.5"}}},
          {"shard/transformer", "main", {}},
          {"digits", "main", {{"rate", "0.5"}}},
          {"digits", "eval", {}}};
}

std::string exampleName(const testing::TestParamInfo<Example> &info) {
  std::string name = std::string(info.param.name) + "_" + info.param.entry;
  std::ranges::replace_if(
      name, [](char c) { return c == '/' || c == '-' || c == '.'; }, '_');
  return name;
}

std::string examplesFolder() { return MGPU_EXAMPLES; }

Result<ImportRequest> readProgramFile(const std::string &path) {
  MGPU_TRY_ASSIGN(auto file, readFile(path));
  ImportRequest request;
  request.name = path;
  request.text.assign(reinterpret_cast<const char *>(file.data()), file.size());
  return request;
}

ImportOutcome importExample(const Example &example) {
  // One that is alone in its folder has the folder's name.
  std::string name = example.name;
  if (name.find('/') == name.npos)
    name += "/" + name;
  std::string path = examplesFolder() + "/" + name + ".mlir";
  Result<ImportRequest> request = readProgramFile(path);
  if (!request)
    return {fail(request.error()), {}, {}, 0, {}};
  request->entry = example.entry;
  request->scalars = example.scalars;
  request->racesAreErrors = true;
  return Importer().import(*request);
}

} // namespace mgpu::conformance

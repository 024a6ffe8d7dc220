// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_CONFORMANCE_EXAMPLEPROGRAM_H
#define MGPU_TESTS_CONFORMANCE_EXAMPLEPROGRAM_H

// The programs in examples/, for parameterised tests.

#include "tests/conformance/Import.h"

#include <gtest/gtest.h>
#include <map>
#include <string>
#include <vector>

namespace mgpu::conformance {

struct Example {
  const char *name, *entry;
  std::map<std::string, std::string> scalars;
};

/// Else the name of each test would hold the addresses of this run.
void PrintTo(const Example &shown, std::ostream *os);

std::vector<Example> allExamples();
/// The path of the folder that all examples are in.
std::string examplesFolder();
/// The program of a file, named by its path, to be imported as it is.
Result<ImportRequest> readProgramFile(const std::string &path);
ImportOutcome importExample(const Example &example);
/// "saxpy_main"
std::string exampleName(const testing::TestParamInfo<Example> &info);

} // namespace mgpu::conformance

#endif // MGPU_TESTS_CONFORMANCE_EXAMPLEPROGRAM_H

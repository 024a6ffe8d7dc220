// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_PLANNER_RANDOMPROGRAMDAG_H
#define MGPU_TESTS_UNIT_PLANNER_RANDOMPROGRAMDAG_H

#include "planner/dag/ProgramText.h"

#include <random>

namespace mgpu::planner::testing {

/// randomDag() with every field in use: kernels with arguments, constants,
/// arguments and results, names that need quoting. Passes Program::check().
Program randomProgram(uint64_t seed);

/// Facts of the kernel of that hash, with every field in use; countable.
KernelFacts randomFacts(std::mt19937_64 &random, const std::string &kernel);

/// Finds what toText() stored.
BlobReader readerOf(const Blobs &blobs);

} // namespace mgpu::planner::testing

#endif // MGPU_TESTS_UNIT_PLANNER_RANDOMPROGRAMDAG_H

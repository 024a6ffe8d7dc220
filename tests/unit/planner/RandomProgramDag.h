// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_PLANNER_RANDOMPROGRAMDAG_H
#define MGPU_TESTS_UNIT_PLANNER_RANDOMPROGRAMDAG_H

#include "planner/dag/ProgramText.h"

namespace mgpu::planner::testing {

/// randomDag() with every field in use: kernels with arguments, constants,
/// arguments and results, names that need quoting. Passes Program::check().
Program randomProgram(uint64_t seed);

/// Finds what toText() stored.
BlobReader readerOf(const Blobs &blobs);

} // namespace mgpu::planner::testing

#endif // MGPU_TESTS_UNIT_PLANNER_RANDOMPROGRAMDAG_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_CONFORMANCE_RANDOMSPMD_H
#define MGPU_TESTS_CONFORMANCE_RANDOMSPMD_H

// Random tensor programs, each written twice: for one device on whole tensors,
// and for N devices on shards, with the collectives that make up for it.

#include "planner/dag/Dag.h"
#include "tests/conformance/Execute.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mgpu::conformance {

struct RandomSpmd {
  std::string one, many; ///< MLIR texts with the same arguments and results
  ElementType type = ElementType::I32;
  uint32_t devices = 1;
  std::vector<std::string> arguments; ///< each of spmdSide x spmdSide elements
};

/// All dimensions of whole tensors. Every mesh of random programs divides it.
/// Floats whose absolute value is no larger are exact sums of integers.
inline constexpr double mostExact = 1 << 23;

inline constexpr int64_t spmdSide = 24;

/// The programs of a seed. Integers wrap and floats stay whole and small, so
/// both must give the same bits.
RandomSpmd randomSpmd(uint64_t seed);

/// `%name = %a operation %b` of `type`, as a linalg.generic that reads %b where
/// it writes its result.
std::string writtenInto(const std::string &name, const std::string &operation,
                        const std::string &a, const std::string &b,
                        const std::string &type, size_t rank,
                        const std::string &element);

/// Small whole numbers for its arguments.
HostData spmdInputs(const RandomSpmd &program, uint64_t seed);

} // namespace mgpu::conformance

#endif // MGPU_TESTS_CONFORMANCE_RANDOMSPMD_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_DAG_PROGRAMWORDS_H
#define MGPU_PLANNER_DAG_PROGRAMWORDS_H

// The words of a program's text form, shared by what writes and what reads it.

#include "planner/dag/Dag.h"

#include <array>

namespace mgpu::planner {

/// The version that is written, which alone is read.
inline constexpr uint32_t programVersion = 8;
inline constexpr std::array<std::string_view, 6> bufferRoleNames = {
    "temporary", "resident", "argument", "result", "local", "constant"};
inline constexpr std::string_view edgeLetters = "daoc"; // by DepKind

inline std::string_view nameOf(BufferRole role) {
  return bufferRoleNames[size_t(role)];
}
inline char letterOf(DepKind kind) { return edgeLetters[size_t(kind)]; }

} // namespace mgpu::planner

#endif // MGPU_PLANNER_DAG_PROGRAMWORDS_H

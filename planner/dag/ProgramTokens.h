// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_DAG_PROGRAMTOKENS_H
#define MGPU_PLANNER_DAG_PROGRAMTOKENS_H

// Reads the tokens that lines of a program's text are made of. Each reads the
// next words of `line`, or says what is wrong with them and where.

#include "planner/dag/Dag.h"
#include "support/LineText.h"

#include <array>
#include <fmt/format.h>

namespace mgpu::planner {

// The words of a program's text form, shared by what writes and what reads it.

/// The version that is written, which alone is read.
inline constexpr uint32_t programVersion = 8;
inline constexpr std::array<std::string_view, 6> bufferRoleNames = {
    "temporary", "resident", "argument", "result", "local", "constant"};
inline constexpr std::string_view edgeLetters = "daoc"; // by DepKind

inline std::string_view nameOf(BufferRole role) {
  return bufferRoleNames[size_t(role)];
}
inline char letterOf(DepKind kind) { return edgeLetters[size_t(kind)]; }

/// The T whose name is the next word, T being an enumeration from 0 to `last`.
template <typename T, typename NameOf>
Result<T> readChoice(LineReader &line, std::string_view noun, T last,
                     NameOf nameOf) {
  std::string_view word = line.word();
  for (unsigned k = 0; k <= unsigned(last); ++k)
    if (nameOf(T(k)) == word)
      return T(k);
  return line.bad(
      fmt::format("\"{}\" is not a valid {}", word.substr(0, 40), noun));
}

Result<bool> readFlag(LineReader &line);
Result<ElementType> readElementType(LineReader &line);
Result<CollectiveKind> readCollectiveKind(LineReader &line);
Result<DeviceId> readDevice(LineReader &line);
Result<BufferId> readBufferId(LineReader &line);
Result<Box> readBox(LineReader &line);
Result<Dim3> readDimensions(LineReader &line);
Result<void> readTypeAndShape(LineReader &line, ElementType &type,
                              std::vector<int64_t> &shape);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_DAG_PROGRAMTOKENS_H

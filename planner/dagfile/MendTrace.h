// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_DAGFILE_MENDTRACE_H
#define MGPU_PLANNER_DAGFILE_MENDTRACE_H

// JSON of what profilers write in its place.

#include <string>
#include <string_view>

namespace mgpu::planner {

/// `text` of a trace with what profilers wrote that is no JSON replaced by what
/// is, byte for byte, so that places are those of `text`:
/// - `inf`, `Infinity` and `NaN` as values become -1, which no field that is
///   read may be;
/// - in strings, control characters and bytes beyond ASCII become `?`, and a
///   backslash that begins no escape (a path of Windows) becomes `/`;
/// - a comma behind the last of a list goes.
std::string mendTrace(std::string_view text);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_DAGFILE_MENDTRACE_H

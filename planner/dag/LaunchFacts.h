// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_DAG_LAUNCHFACTS_H
#define MGPU_PLANNER_DAG_LAUNCHFACTS_H

#include "planner/dag/Dag.h"

namespace mgpu::planner {

/// Facts that hold for every launch of a kernel in a DAG, so that the kernel's
/// text for GPUs may rely on it.
struct LaunchFacts {
  /// The largest grid along each axis; 1 for a kernel that is not called.
  Dim3 maxGrid{1, 1, 1};
  /// The address of every buffer argument is a multiple of so many bytes, a
  /// power of two up to mostLaunchAlignment. 1 where nothing is known.
  uint32_t alignment = 1;
  /// By argument: it is a buffer, and no launch writes any byte that it reads
  /// of that buffer. An access through another argument cannot change what is
  /// read through this one.
  std::vector<bool> unwritten = {};
  /// By argument: so many bytes from its address on are read by each launch,
  /// and no node of a replay writes them. 0 where few are, or none.
  std::vector<uint64_t> steadyBytes = {};
  bool operator==(const LaunchFacts &) const = default;

  /// Whether what relies on `other` may rely on these facts too, grids aside.
  bool implies(const LaunchFacts &other) const;
};

/// The widest access of a GPU's thread, in bytes.
inline constexpr uint32_t mostLaunchAlignment = 16;

/// By KernelId. A device buffer begins at a multiple of arenaAlignment
/// (planner/plan/Plan.h), one that the caller may put elsewhere at a multiple
/// of its element, so that no access of it is wider; nothing is known of host
/// memory.
std::vector<LaunchFacts> launchFacts(const Dag &dag);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_DAG_LAUNCHFACTS_H

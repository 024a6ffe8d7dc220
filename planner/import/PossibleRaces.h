// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_POSSIBLERACES_H
#define MGPU_PLANNER_IMPORT_POSSIBLERACES_H

// Races within a launch where an index or a condition is not affine. Values
// that follow from the ids alone (an exclusive or of them) are worked out
// thread by thread; values from memory are not known.

#include "planner/import/AccessSet.h"
#include "planner/import/LaunchRaces.h"

namespace mgpu::planner {

/// Two accesses of one buffer, at least one of which is not affine: two threads
/// make them at one element, where the indices follow from the ids; else the
/// indices are two different expressions, and no threads are kept apart by what
/// of them is affine: `mayMeet` says that of larger accesses, and of threads
/// that differ in one of some ids. Conditions that are not known count
/// as met. Looked at are the first few thousand threads.
std::vector<LaunchRace> findPossibleRaces(
    mlir::Region &body, KernelViews &views, AffineEvaluator &affine,
    llvm::function_ref<bool(const AccessSet &, const AccessSet &, Ids)>
        mayMeet);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_POSSIBLERACES_H

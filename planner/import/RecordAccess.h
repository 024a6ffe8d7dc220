// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_RECORDACCESS_H
#define MGPU_PLANNER_IMPORT_RECORDACCESS_H

#include "planner/import/KernelAccess.h"

namespace mgpu::planner {

/// Adds an access to those of a kernel: to one of the same bytes where there is
/// one. Many boxes of a root become one that holds them all.
void recordAccess(std::vector<KernelAccess> &accesses, KernelAccess access);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_RECORDACCESS_H

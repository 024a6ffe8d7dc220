// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_CERTIFICATE_CHECKSEARCH_H
#define MGPU_PLANNER_CERTIFICATE_CHECKSEARCH_H

#include "planner/certificate/Certificate.h"

namespace mgpu::planner {

/// Whether a tree of branches shows that no schedule of the problem ends before
/// `boundUs`, but for two parts in 10^9: every leaf has none, once what its
/// decisions force is drawn. A contradiction at a leaf rests on heads, tails
/// and the sets of a stream, as those of makespanBound() do.
Result<void> checkSearch(const SearchArgument &search, double boundUs,
                         const Problem &problem);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_CERTIFICATE_CHECKSEARCH_H

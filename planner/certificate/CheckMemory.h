// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_CERTIFICATE_CHECKMEMORY_H
#define MGPU_PLANNER_CERTIFICATE_CHECKMEMORY_H

#include "planner/certificate/Certificate.h"

namespace mgpu::planner {

/// The makespan that an argument about memory proves, by the heads and tails of
/// its certificate.
Result<double> provenByMemory(const MemoryArgument &argument,
                              const Certificate &certificate,
                              const Problem &problem);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_CERTIFICATE_CHECKMEMORY_H

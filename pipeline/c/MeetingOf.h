// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_C_MEETINGOF_H
#define MGPU_PIPELINE_C_MEETINGOF_H

#include "pipeline/c/mgt.h"
#include "pipeline/target/TheRanks.h"

namespace mgpu::pipeline {

/// How the processes of a program meet. `call` is for errors, which are Usage.
Result<Meeting> meetingOf(const char *call, const mgt_ranks *given);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_C_MEETINGOF_H

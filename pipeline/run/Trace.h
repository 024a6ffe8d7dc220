// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_RUN_TRACE_H
#define MGPU_PIPELINE_RUN_TRACE_H

// A measured replay as a Chrome/Perfetto trace.

#include "capture/replay/Replayer.h"

#include <string>
#include <string_view>

namespace mgpu::pipeline {

/// By process. One row for each queue or thread of the device, more where its
/// nodes overlap, and one for what the host does meanwhile. `onGpu`: rows are
/// called devices, else threads. `file`, if it is given, is the DAG as an
/// mgpu-dag/2 text, which the trace then is as well: `plan` reads it as one.
std::string traceText(const planner::Dag &dag,
                      const std::vector<capture::TimedReplay> &processes,
                      bool onGpu, std::string_view file = {});

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_RUN_TRACE_H

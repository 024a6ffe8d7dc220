// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_DAGFILE_TRACEDAG_H
#define MGPU_PLANNER_DAGFILE_TRACEDAG_H

// A recorded trace (TraceEvents.h) as a DAG with durations, to ask what a
// better order of the same work would give.

#include "planner/dag/Dag.h"
#include "planner/dagfile/TraceEvents.h"

namespace mgpu::planner {

struct RecordedTrace {
  Dag dag;
  double recordedUs = 0; ///< first start to last end
  uint32_t streams = 0;
  /// Facts that the trace does not say, and what was taken in their place.
  std::vector<std::string> notes;
};

/// Each piece of work is a node with the duration recorded, on its own device:
/// those of the trace, numbered from 0 in their order. A node follows
/// - the one before it on its stream,
/// - what its stream waited for by a recorded event,
/// - what the host had waited for when it launched the node.
/// Where a trace with several streams records no waits between them, a node
/// follows instead all that had ended on other streams when it started: no
/// order that the recording did not have is then taken to be free.
/// Kernels and collectives come out opaque: the DAG can be planned and not run.
/// Memory is not in a trace, so the nodes use none.
Result<RecordedTrace> traceDag(std::vector<TraceEvent> events,
                               std::string_view source);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_DAGFILE_TRACEDAG_H

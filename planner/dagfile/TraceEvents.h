// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_DAGFILE_TRACEEVENTS_H
#define MGPU_PLANNER_DAGFILE_TRACEEVENTS_H

// The events of a Chrome trace as PyTorch's profiler (Kineto) writes it, cut
// down to what a DAG is made of:
//   {"traceEvents":[{"ph":"X","cat":"kernel","name":S,"ts":US,"dur":US,
//     "args":{"device":D,"stream":N,"correlation":C, ...}}, ...], ...}
// cat is kernel, gpu_memcpy or gpu_memset for work, and cuda_sync for waits
// (recorded where the profiler ran with enable_cuda_sync_events), whose args
// have "cuda_sync_kind", "wait_on_stream" and
// "wait_on_cuda_event_record_corr_id". CUPTI numbers calls by "correlation" in
// the order in which they were made; work has the number of what launched it.
// NCCL's kernels carry "Collective name", "Group size", "In msg nelems", "Out
// msg nelems" and "dtype".

#include "support/Result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu::planner {

struct TraceEvent {
  enum Kind : uint8_t {
    Kernel,
    Copy,
    Fill,
    StreamWait, ///< a stream waits for an event of another
    EventSync,  ///< the host waits for an event
    StreamSync, ///< the host waits for a stream
    DeviceSync, ///< the host waits for a device, or one of its contexts
  };
  Kind kind = Kernel;
  std::string name;
  double startUs = 0, durationUs = 0;
  int64_t device = 0, stream = -1, correlation = -1;
  int64_t waitsForStream = -1, waitsForRecord = -1; ///< of waits; -1: unknown
  uint64_t bytes = 0;                               ///< of copies and fills
  std::string collective;                           ///< "Collective name"
  std::string elementType;
  uint64_t groupSize = 0, elementsIn = 0, elementsOut = 0;

  bool isWork() const { return kind <= Fill; }
};

/// Whether a JSON text is such a trace, by what it says of itself.
bool isTrace(std::string_view text);

/// In the order of the file. Invalid for text that is not JSON (a file that was
/// cut short is said to be) or an event of work without time, device or stream;
/// `source` names the text. Reads in one pass and keeps work and waits alone;
/// with a `step` ("ProfilerStep#3", as torch.profiler's schedule marks it)
/// those of it: the work that began on the GPU within the mark, and what was
/// called between its first and last launch. Usage, with the steps there are,
/// for another.
Result<std::vector<TraceEvent>> readTraceEvents(std::string_view text,
                                                std::string_view source,
                                                std::string_view step = "");

/// `text` of a trace with what profilers wrote that is no JSON replaced by what
/// is, byte for byte, so that places are those of `text`:
/// - `inf`, `Infinity` and `NaN` as values become -1, which no field that is
///   read may be;
/// - in strings, control characters and bytes beyond ASCII become `?`, and a
///   backslash that begins no escape (a path of Windows) becomes `/`;
/// - a comma behind the last of a list goes.
std::string mendTrace(std::string_view text);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_DAGFILE_TRACEEVENTS_H

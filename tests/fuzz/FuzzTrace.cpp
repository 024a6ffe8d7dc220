// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any text: a recorded trace gives a DAG or an error; every DAG can be planned,
// and the plan passes verify().
#include "planner/cost/TargetMachine.h"
#include "planner/dagfile/TraceDag.h"
#include "planner/schedule/list/Schedulers.h"

#include <cstdlib>

using namespace mgpu;
using namespace mgpu::planner;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  isTrace(text);
  auto events = readTraceEvents(text, "input");
  if (!events)
    return 0;
  auto trace = traceDag(std::move(*events), "input");
  if (!trace)
    return 0;
  const planner::Machine model = planner::hostMachine();
  Result<Plan> plan = schedule(trace->dag, model);
  if (!plan || !verify(*plan, trace->dag))
    abort();
  return 0;
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any text: parseDagJson gives a DAG or an error; every DAG it accepts can be
// planned, and the plan passes verify().
#include "planner/cost/TargetMachine.h"
#include "planner/dagfile/DagJson.h"
#include "planner/schedule/list/Schedulers.h"

#include <cstdlib>

using namespace mgpu;
using namespace mgpu::planner;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  Result<Dag> dag = parseDagJson(text, "input");
  if (!dag)
    return 0;
  const planner::Machine model = planner::hostMachine();
  Result<Plan> plan = schedule(*dag, model);
  if (!plan || !verify(*plan, *dag))
    abort();
  return 0;
}

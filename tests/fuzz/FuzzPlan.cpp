// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any text: parsePlan gives a plan or an error. A plan it accepts prints to
// text that reads back the same, and verify() judges it without crashing.
#include "planner/dag/DagBuilder.h"
#include "planner/plan/Verify.h"

#include <cstdlib>

using namespace mgpu;
using namespace mgpu::planner;

/// Two devices, a host buffer, a collective: every kind of line has a subject.
static Dag smallDag() {
  Dag dag;
  dag.numDevices = 2;
  for (int i = 0; i < 5; ++i) {
    Buffer buffer;
    buffer.name = std::string(1, char('a' + i));
    buffer.device = {i < 4 ? i / 2 : -1};
    buffer.role = i == 1   ? BufferRole::Resident
                  : i == 4 ? BufferRole::HostLocal
                           : BufferRole::Temporary;
    buffer.sizeBytes = 512;
    dag.buffers.push_back(buffer);
  }
  DependencyTracker tracker(dag);
  Box box = Box::flat(0, 512);
  for (uint32_t i = 0; i < 6; ++i) {
    DagNode node;
    node.name = "n";
    if (i == 3) {
      CollectiveCall call;
      for (int32_t d = 0; d < 2; ++d) {
        BufferId id{uint32_t(d) * 2};
        call.members.push_back({{d}, id, id, box, box});
        node.uses.push_back({id, box, true, true});
        node.devices.push_back({d});
      }
      node.work = call;
    } else if (i == 4) {
      node.work = CopyCall{BufferId{4}, BufferId{4}, box, box};
      node.uses = {{BufferId{4}, box, true, true}};
    } else {
      node.work = OpaqueCall{};
      node.devices = {{int32_t(i % 2)}};
      node.uses = {{BufferId{i % 2 * 2}, box, i > 1, true}};
    }
    tracker.append(node);
  }
  return dag;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Dag dag = smallDag();
  std::string_view text(reinterpret_cast<const char *>(data), size);
  Result<Plan> plan = parsePlan(text, dag);
  if (!plan)
    return 0;
  std::string printed = toText(*plan, dag);
  Result<Plan> back = parsePlan(printed, dag);
  if (!back || toText(*back, dag) != printed)
    abort();
  (void)verify(*plan, dag);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_RECORD_BUFFERTABLE_H
#define MGPU_PLANNER_RECORD_BUFFERTABLE_H

// The buffers of a program while it is recorded: their names, and how long they
// live in the program's own order.

#include "planner/dag/Dag.h"
#include "planner/record/Findings.h"
#include "planner/record/SourceOrder.h"

#include <map>

namespace mgpu::planner {

class BufferTable {
public:
  BufferTable(Dag &dag, const SourceOrder &order, Findings &findings)
      : dag(dag), order(order), findings(findings) {}

  /// Appends the buffer, with its size from its type and shape, and with a
  /// number after its name where another has that name.
  BufferId add(Buffer buffer);
  /// Fails where the buffer has been freed.
  Result<void> checkLive(BufferId buffer, Place place) const;
  void noteUse(BufferId buffer, SourcePoint point) {
    lives[buffer.value].lastUses.raise(point);
  }
  /// Fails where the program may not free it, or work on it may still run.
  /// `named` is the device that the call names, if it names one.
  Result<void> free(BufferId buffer, std::optional<DeviceId> named,
                    Place place);

private:
  struct Life {
    std::optional<Place> freedAt;
    VectorClock lastUses;
  };
  Dag &dag;
  const SourceOrder &order;
  Findings &findings;
  std::map<std::string, uint32_t> names;
  std::vector<Life> lives;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_RECORD_BUFFERTABLE_H

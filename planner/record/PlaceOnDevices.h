// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_RECORD_PLACEONDEVICES_H
#define MGPU_PLANNER_RECORD_PLACEONDEVICES_H

#include "planner/dag/Program.h"

namespace mgpu::planner {

/// Puts the arguments and results of a program that `processes` call, each with
/// as many of its own in a row, onto the devices of those: the caller gives
/// memory of a device for each. Copies from and to the host become copies on a
/// device, and go where the device's own buffer can be the caller's memory.
/// Results become arguments of role Output, behind the others and in their
/// order. A number that a loop or a launch reads on the host stays there.
/// Errors: Unsupported for a result that is not made by copies.
Result<void> placeOnDevices(Program &program, uint32_t processes);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_RECORD_PLACEONDEVICES_H

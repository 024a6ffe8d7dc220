// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_ONEDEVICE_H
#define MGPU_DIALECT_CONVERSION_ONEDEVICE_H

// A program of many devices that all do alike, as the code of device 0 and the
// calls that it makes of collectives. Nothing of it grows with the number of
// devices but the lists of who is in a group.

#include "llvm/ADT/StringRef.h"

namespace mgpu::conversion {

/// On a function for several devices: ConvertSpmdToMgpu writes device 0 alone.
/// On a create_communicator: device 0 alone makes its calls.
inline constexpr llvm::StringLiteral oneDeviceName = "mgpu.one_device";

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_ONEDEVICE_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PJRT_HANDLERS_H
#define MGPU_PIPELINE_PJRT_HANDLERS_H

// A function for each call of PJRT: Client_Create() is PJRT_Client_Create. Each
// has an argument with all fields of Abi.h, whatever the caller knows: those
// that it does not know are zero (Plugin.cpp).

#include "pipeline/pjrt/Abi.h"

namespace mgpu::pipeline::pjrt {

#define CALL(name, ...) PJRT_Error *name(PJRT_##name##_Args &args);
#define CALL_WITHOUT_ERROR(name, ...) void name(PJRT_##name##_Args &args);
#include "pipeline/pjrt/Calls.inc"

} // namespace mgpu::pipeline::pjrt

#endif // MGPU_PIPELINE_PJRT_HANDLERS_H

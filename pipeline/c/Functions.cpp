// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions that the caller registers for custom calls.
#include "pipeline/c/Calls.h"

#include "device/api/HostFunctions.h"

using namespace mgpu;

// The host target calls them without a copy: both sides have the same structs.
#define MGPU_SAME(theirs, theirMember, ours, ourMember)                        \
  static_assert(offsetof(theirs, theirMember) ==                               \
                offsetof(device::ours, ourMember))
MGPU_SAME(mgt_tensor, type, FunctionTensor, type);
MGPU_SAME(mgt_tensor, rank, FunctionTensor, rank);
MGPU_SAME(mgt_tensor, shape, FunctionTensor, shape);
MGPU_SAME(mgt_tensor, data, FunctionTensor, data);
MGPU_SAME(mgt_tensor, bytes, FunctionTensor, bytes);
MGPU_SAME(mgt_call, size, FunctionCall, size);
MGPU_SAME(mgt_call, name, FunctionCall, name);
MGPU_SAME(mgt_call, config, FunctionCall, config);
MGPU_SAME(mgt_call, config_bytes, FunctionCall, configBytes);
MGPU_SAME(mgt_call, num_operands, FunctionCall, numOperands);
MGPU_SAME(mgt_call, num_results, FunctionCall, numResults);
MGPU_SAME(mgt_call, operands, FunctionCall, operands);
MGPU_SAME(mgt_call, results, FunctionCall, results);
MGPU_SAME(mgt_call, message, FunctionCall, message);
MGPU_SAME(mgt_call, message_bytes, FunctionCall, messageBytes);
static_assert(sizeof(mgt_tensor) == sizeof(device::FunctionTensor) &&
              sizeof(mgt_call) == sizeof(device::FunctionCall));
#undef MGPU_SAME

extern "C" mgt_status mgt_register(const char *name, mgt_function function,
                                   void *user) {
  return pipeline::guarded(nullptr, [&]() -> Result<void> {
    if (!name || !*name)
      return fail(ErrorKind::Usage,
                  "mgt_register: name must not be null or empty");
    device::registerFunction(
        name, {reinterpret_cast<decltype(device::HostFunction::call)>(function),
               user});
    return {};
  });
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PJRT_ENTER_H
#define MGPU_PIPELINE_PJRT_ENTER_H

#include "pipeline/pjrt/Errors.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <type_traits>

namespace mgpu::pipeline::pjrt {

/// Calls `handler` with as much of an argument as the caller knows, and gives
/// as much back. No exception goes further.
template <typename Args, auto handler>
auto enter(Args *given) -> decltype(handler(*given)) {
  using Return = decltype(handler(*given));
  auto fault = [](PJRT_Error *(*make)()) -> Return {
    if constexpr (std::is_void_v<Return>)
      return;
    else
      return make();
  };
  if (!given || given->struct_size < offsetof(Args, extension_start))
    return fault([] { return invalid("a call has no argument"); });
  const size_t known = std::min(given->struct_size, sizeof(Args));
  Args args{};
  std::memcpy(static_cast<void *>(&args), given, known);
  try {
    if constexpr (std::is_void_v<Return>) {
      handler(args);
      std::memcpy(static_cast<void *>(given), &args, known);
    } else {
      PJRT_Error *error = handler(args);
      if (!error)
        std::memcpy(static_cast<void *>(given), &args, known);
      return error;
    }
  } catch (const std::bad_alloc &) {
    return fault([] {
      return refuse(PJRT_Error_Code_RESOURCE_EXHAUSTED, "out of memory");
    });
  } catch (...) {
    return fault([] {
      return refuse(PJRT_Error_Code_INTERNAL, "a fault of mgpu: an exception");
    });
  }
}

} // namespace mgpu::pipeline::pjrt

#endif // MGPU_PIPELINE_PJRT_ENTER_H

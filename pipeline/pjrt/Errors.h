// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PJRT_ERRORS_H
#define MGPU_PIPELINE_PJRT_ERRORS_H

// Errors, which calls of PJRT return, and events.

#include "pipeline/pjrt/Abi.h"
#include "support/Result.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

struct PJRT_Error {
  const PJRT_Error_FunctionTable *vtable; // first, by the interface
  PJRT_Error_Code code;
  std::string message;
};

namespace mgpu::pipeline::pjrt {

/// Makes an error for a call to return; the caller destroys it.
PJRT_Error *refuse(PJRT_Error_Code code, std::string message);
PJRT_Error *refuse(const Error &error);
PJRT_Error *invalid(std::string message);
PJRT_Error *unsupported(std::string message);
PJRT_Error *isNull(const char *field);

/// Refuses a call whose argument lacks an object.
#define MGPU_PJRT_NEEDS(field)                                                 \
  do {                                                                         \
    if (!args.field)                                                           \
      return isNull(#field);                                                   \
  } while (0)

/// Returns the error of `expression`, a Result, if any.
#define MGPU_PJRT_TRY(expression)                                              \
  do {                                                                         \
    if (auto &&mgpuTryResult = (expression); !mgpuTryResult)                   \
      return refuse(mgpuTryResult.error());                                    \
  } while (0)

/// Returns the error of `expression`, a PJRT_Error *, if any.
#define MGPU_PJRT_PASS(expression)                                             \
  do {                                                                         \
    if (PJRT_Error *mgpuPassed = (expression))                                 \
      return mgpuPassed;                                                       \
  } while (0)

// Calls that give one property of an object: a value, a text with its size, or
// a list with its length.
#define MGPU_PJRT_GET(call, object, field, value)                              \
  PJRT_Error *call(PJRT_##call##_Args &args) {                                 \
    MGPU_PJRT_NEEDS(object);                                                   \
    args.field = value;                                                        \
    return nullptr;                                                            \
  }
#define MGPU_PJRT_TEXT(call, object, field, text)                              \
  PJRT_Error *call(PJRT_##call##_Args &args) {                                 \
    MGPU_PJRT_NEEDS(object);                                                   \
    args.field = (text).c_str();                                               \
    args.field##_size = (text).size();                                         \
    return nullptr;                                                            \
  }
#define MGPU_PJRT_LIST(call, object, field, count, list)                       \
  PJRT_Error *call(PJRT_##call##_Args &args) {                                 \
    MGPU_PJRT_NEEDS(object);                                                   \
    args.field = (list).data();                                                \
    args.count = (list).size();                                                \
    return nullptr;                                                            \
  }

/// Something that is done once, well or with an error. Thread-safe.
class Completion {
public:
  using Callback =
      std::function<void(PJRT_Error_Code code, const std::string &message)>;

  bool isDone() const;
  /// A second call changes nothing.
  void finish(PJRT_Error_Code code = PJRT_Error_Code_OK,
              std::string message = "");
  void wait() const;
  /// The error it was done with, once it is done; null where there is none.
  PJRT_Error *error() const;
  /// Calls it once, now or from the thread that finishes.
  void whenDone(Callback callback);

private:
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  bool done = false;
  PJRT_Error_Code code = PJRT_Error_Code_OK;
  std::string message;
  std::vector<Callback> waiting;
};
using Done = std::shared_ptr<Completion>;

/// Done well, from the beginning.
const Done &alreadyDone();

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

/// A caller has it and destroys it.
struct PJRT_Event {
  mgpu::pipeline::pjrt::Done of;
};

#endif // MGPU_PIPELINE_PJRT_ERRORS_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_FAULT_H
#define MGPU_SUPPORT_FAULT_H

// Faults of code that runs in a process of its own, such as a candidate of the
// tuner. A fault costs that code alone; an Error (support/Result.h) ends what
// was asked for.

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace mgpu {

enum class FaultKind : uint8_t {
  Crash,       ///< its process ended on its own
  Hang,        ///< it gave no answer in time
  OutOfBounds, ///< it wrote where no buffer of the program is
  WrongResult, ///< its outputs differ from the reference
  OverLimit,   ///< it needs more memory than it may have
  Refused,     ///< it was not built: the compiler or a check said no
};
/// "crash", "hang", "out-of-bounds", "wrong-result", "over-limit", "refused".
std::string_view toString(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::Refused;
  std::string what; ///< one sentence
};

template <typename T>
using Outcome = tl::expected<T, Fault>;

inline tl::unexpected<Fault> fault(FaultKind kind, std::string what) {
  return tl::make_unexpected(Fault{kind, std::move(what)});
}

} // namespace mgpu

#endif // MGPU_SUPPORT_FAULT_H

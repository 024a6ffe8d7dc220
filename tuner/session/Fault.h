// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_SESSION_FAULT_H
#define MGPU_TUNER_SESSION_FAULT_H

// What can be wrong with a candidate. A fault costs the candidate; an Error
// (support/Result.h) ends the session.

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace mgpu::tuner {

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

} // namespace mgpu::tuner

#endif // MGPU_TUNER_SESSION_FAULT_H

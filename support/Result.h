// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_RESULT_H
#define MGPU_SUPPORT_RESULT_H

// How the runtime half reports failure: Result<T> carries a value or an Error.
// An Error's message is one sentence: what, where, what to do. No exception
// crosses a folder.

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace mgpu {

/// Process exit codes of every tool (docs/cli.md).
enum class ErrorKind {
  Invalid = 1,     ///< the program, plan or data is wrong
  Usage = 2,       ///< the command line is wrong
  Absent = 3,      ///< a device or library is not there
  Internal = 4,    ///< a bug of ours
  Unsupported = 5, ///< a feature this version does not have
};

/// Why there is an error, where a caller treats it differently for that.
enum class ErrorCause : uint8_t {
  Own,       ///< what the message says
  OtherRank, ///< another rank failed, so this one gave up
};

struct Error {
  ErrorKind kind = ErrorKind::Invalid;
  std::string message; ///< the whole sentence, which says `location` too
  /// "file:line:column" of what is wrong; empty where no place is known.
  std::string location{};
  ErrorCause cause = ErrorCause::Own;
};

template <typename T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorKind kind, std::string message) {
  return tl::make_unexpected(Error{kind, std::move(message)});
}
inline tl::unexpected<Error> fail(Error error) {
  return tl::make_unexpected(std::move(error));
}

/// The error with words before its message.
inline tl::unexpected<Error> failIn(std::string_view before, Error error) {
  error.message.insert(0, before);
  return tl::make_unexpected(std::move(error));
}

/// All values, or the first error.
template <typename T>
Result<std::vector<T>> allOf(std::vector<Result<T>> results) {
  std::vector<T> values;
  values.reserve(results.size());
  for (Result<T> &each : results) {
    if (!each)
      return fail(std::move(each.error()));
    values.push_back(std::move(*each));
  }
  return values;
}

/// Returns the error of `expression` from the enclosing function, if any.
#define MGPU_TRY(expression)                                                   \
  do {                                                                         \
    auto mgpuTryResult = (expression);                                         \
    if (!mgpuTryResult)                                                        \
      return ::mgpu::fail(std::move(mgpuTryResult.error()));                   \
  } while (0)

/// Declares `variable` with the value of `expression`, or returns its error.
#define MGPU_TRY_ASSIGN(variable, expression)                                  \
  MGPU_TRY_ASSIGN_IMPL(MGPU_CONCAT(mgpuTry, __LINE__), variable, expression)
#define MGPU_CONCAT_IMPL(a, b) a##b
#define MGPU_CONCAT(a, b) MGPU_CONCAT_IMPL(a, b)
#define MGPU_TRY_ASSIGN_IMPL(temporary, variable, expression)                  \
  auto temporary = (expression);                                               \
  if (!temporary)                                                              \
    return ::mgpu::fail(std::move(temporary.error()));                         \
  variable = std::move(*temporary)

} // namespace mgpu

#endif // MGPU_SUPPORT_RESULT_H

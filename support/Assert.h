// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_ASSERT_H
#define MGPU_SUPPORT_ASSERT_H

// Conditions that only a bug of mgpu can break: what a folder needs of its
// callers, and pairs, as what is written and read back. A condition that does
// not hold is printed with its place and a sentence, and the program aborts.
// Nothing that a user gives is asserted; bad input is an Error.

namespace mgpu {

[[noreturn]] void assertFailed(const char *condition, const char *file,
                               int line, const char *sentence);

} // namespace mgpu

/// Is looked at in every build, so it must cost next to nothing.
#define MGPU_CHECK(condition, sentence)                                        \
  ((condition)                                                                 \
       ? void()                                                                \
       : ::mgpu::assertFailed(#condition, __FILE__, __LINE__, sentence))

/// Is looked at in `dev` and the tests; release builds define NDEBUG.
#ifdef NDEBUG
#define MGPU_ASSERT(condition, sentence)                                       \
  static_cast<void>(false && static_cast<bool>(condition))
#else
#define MGPU_ASSERT(condition, sentence) MGPU_CHECK(condition, sentence)
#endif

#endif // MGPU_SUPPORT_ASSERT_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_REHEARSAL_EXPORTS_H
#define MGPU_TESTS_REHEARSAL_EXPORTS_H

// Functions of a shared library that go on to where a table says, whatever
// their parameters: a jump through a variable that is set when the library is
// loaded. x86-64.

#define MGPU_REHEARSAL_EXPORT(symbol)                                          \
  extern "C" {                                                                 \
  __attribute__((visibility("hidden"), used)) void *target_##symbol;           \
  }                                                                            \
  asm(".pushsection .text\n.globl " #symbol "\n.type " #symbol                 \
      ", @function\n" #symbol ":\n\tjmp *target_" #symbol                      \
      "(%rip)\n.size " #symbol ", .-" #symbol "\n.popsection");

/// In a function: where calls of `symbol` go.
#define MGPU_REHEARSAL_SET(symbol, function)                                   \
  target_##symbol = reinterpret_cast<void *>(function);

#endif // MGPU_TESTS_REHEARSAL_EXPORTS_H

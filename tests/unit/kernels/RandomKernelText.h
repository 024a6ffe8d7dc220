// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_KERNELS_RANDOMKERNELTEXT_H
#define MGPU_TESTS_UNIT_KERNELS_RANDOMKERNELTEXT_H

#include "RandomKernel.h"

namespace mgpu::kernels::random {

inline std::string typeName(Kind kind) {
  static const char *const names[] = {"i8",    "i16", "i32", "i64",
                                      "index", "f32", "i1"};
  return names[kind];
}

/// The bytes of each array in the buffer that holds several.
uint64_t bytesOfSlot(const Kernel &kernel);

/// A kernel's operations as MLIR, after what textOf begins with.
class Printer {
public:
  explicit Printer(const Kernel &kernel) : kernel(kernel) {}
  void print(const std::vector<Op> &ops);
  static std::string name(int value) { return "%v" + std::to_string(value); }

  std::string text;

private:
  void printSimple(const Op &op);
  void printArray(const Op &op);
  void printAccess(const Op &op);
  std::string elementOf(const Op &op, const std::string &at);
  void printFor(const Op &op);
  void printWhile(const Op &op);
  void printBody(const Body &body);

  std::string type(int value) const { return typeName(kernel.kinds[value]); }
  /// Names and types of values from the one at `first` on.
  std::string named(const std::vector<int> &values, size_t first = 0) const;
  std::string typed(const std::vector<int> &values, size_t first = 0) const;
  std::string fresh() { return "%u" + std::to_string(used++); }

  const Kernel &kernel;
  int used = 0;
};

} // namespace mgpu::kernels::random

#endif // MGPU_TESTS_UNIT_KERNELS_RANDOMKERNELTEXT_H

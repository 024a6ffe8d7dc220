// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_KERNELS_RANDOMKERNELMAKER_H
#define MGPU_TESTS_UNIT_KERNELS_RANDOMKERNELMAKER_H

#include "RandomKernel.h"

#include <array>
#include <random>

namespace mgpu::kernels::random {

/// Makes a kernel that is defined whatever its input: what threads do together
/// lies under control that they surely agree on, and divisors are positive.
class Maker {
public:
  explicit Maker(uint64_t seed) : random(seed) {}
  Kernel make();

private:
  /// Who surely has one value, or goes through a body together.
  enum Who { Nobody, OfSubgroup, OfBlock };

  uint32_t below(uint32_t limit) { return uint32_t(random() % limit); }
  template <size_t n>
  const char *oneOf(const char *const (&names)[n]) {
    return names[below(n)];
  }
  Kind integer() { return Kind(below(F32)); }
  Kind number() { return Kind(below(Bool)); }
  /// A kind of value that lanes hand to each other.
  Kind word() { return std::array{I32, I32, I32, I8, I16, I64, F32}[below(7)]; }

  // Values
  int value(Kind kind, Who who);
  Who agreementOf(const Op &op) const;
  int add(Op op, Kind kind);
  void addWith(Op op, const std::vector<Kind> &kinds);
  int constant(Kind kind, uint64_t bits);
  int arith(const char *name, int x, int y);
  int pick(Kind kind, Who least = Nobody);
  int picked(Kind kind, Who least, uint64_t mask);
  int gather(size_t first);

  // Operations
  void addRandom(int depth, Who who);
  void addArith();
  void addDivision();
  void addBool();
  void addCast();
  void addOfArray(int depth);
  void put(Op::Code code, uint64_t array, int at);
  void take(Op::Code code, uint64_t array, int at);
  void addOfLanes(Who who);
  void makeArray(int depth);

  // Control
  std::vector<Kind> someKinds();
  void addControl(int depth, Who who);
  void addIf(int depth, Who who);
  void addFor(int depth, Who who);
  void addSweep(int depth, Who who);
  void addWhile(int depth, Who who);
  /// A loop that `inside` goes through together; `first` comes first in it.
  using First = std::function<void(const Body &)>;
  void addLoop(int low, int high, uint64_t step, int depth, Who inside,
               const First &first = {});
  void fill(Body &body, const std::vector<Kind> &yields, int depth, Who who,
            const First &first = {});

  std::mt19937_64 random;
  Kernel kernel;
  std::vector<Who> together; ///< of each value
  std::vector<Op> *out = nullptr;
  uint32_t left = 0, slots = 0;
  bool meets = false; ///< whether its threads may know each other
  /// Values of the bodies around.
  std::vector<int> visible, arrays, divisors;
};

} // namespace mgpu::kernels::random

#endif // MGPU_TESTS_UNIT_KERNELS_RANDOMKERNELMAKER_H

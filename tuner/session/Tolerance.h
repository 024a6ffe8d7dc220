// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_SESSION_TOLERANCE_H
#define MGPU_TUNER_SESSION_TOLERANCE_H

// How far a result may be from the one in f64, and whether it is
// (docs/numerics.md has the rule and its sources).

#include "support/Types.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace mgpu::tuner {

/// How a candidate's outputs agree with the reference's.
struct Agreement {
  /// Of the element that is furthest off, its distance from f64 over what it
  /// may be; 0 where all bits are the reference's.
  double share = 0;

  bool isSameBits() const { return share == 0; }
  void add(const Agreement &other) {
    share = share > other.share ? share : other.share;
  }
};
/// "the same bits", "within 12 % of the tolerance".
std::string toText(const Agreement &agreement);

/// Of each element of floating-point outputs, one after the other.
struct Tolerances {
  std::vector<double> exact; ///< in f64, rounded to the output's type
  std::vector<double> bound; ///< of the distance; 0: only equal bits will do
};

bool isFloat(ElementType type);
/// The distance between `value` and the next number of a float type.
double ulpOf(ElementType type, double value);
/// Appends those of a buffer of `type`, given its bytes in f64, in each trial
/// and as the reference gives them: the largest movement in a trial, and a unit
/// in the last place for the error of f64 and its rounding. An element has none
/// where it is no number
/// in any of them, where no trial moved it (it was not computed), and where the
/// reference itself is further off.
void appendTolerances(ElementType type, std::span<const std::byte> exact,
                      std::span<const std::span<const std::byte>> trials,
                      std::span<const std::byte> reference, Tolerances &into);

} // namespace mgpu::tuner

#endif // MGPU_TUNER_SESSION_TOLERANCE_H

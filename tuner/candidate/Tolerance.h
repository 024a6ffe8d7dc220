// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_CANDIDATE_TOLERANCE_H
#define MGPU_TUNER_CANDIDATE_TOLERANCE_H

// How far a result may be from the one in f64 (docs/numerics.md has the rule
// and its sources).

#include "support/Types.h"
#include "tuner/record/OutputAgreement.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace mgpu::tuner {

/// For each element of the floating-point outputs, one after the other.
struct Tolerances {
  std::vector<double> exact; ///< in f64, rounded to the output's type
  std::vector<double> bound; ///< largest distance; 0: only equal bits will do
};

bool isFloat(ElementType type);
/// The distance between `value` and the next number of a float type.
double ulpOf(ElementType type, double value);
/// Appends the tolerances of a buffer of `type`, given its bytes in f64, in
/// each trial and as the reference gives them. A tolerance is the largest
/// movement in a trial, plus a unit in the last place for the error of f64 and
/// its rounding. It is 0 for an element that is not a number in any of them,
/// that no trial moved (it was not computed), or whose reference is further
/// off.
void appendTolerances(ElementType type, std::span<const std::byte> exact,
                      std::span<const std::span<const std::byte>> trials,
                      std::span<const std::byte> reference, Tolerances &into);

} // namespace mgpu::tuner

#endif // MGPU_TUNER_CANDIDATE_TOLERANCE_H

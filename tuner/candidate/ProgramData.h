// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_CANDIDATE_PROGRAMDATA_H
#define MGPU_TUNER_CANDIDATE_PROGRAMDATA_H

// Inputs and expected results of a program under tuning.

#include "capture/replay/Replayer.h"
#include "planner/dag/Dag.h"
#include "support/Fault.h"
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

/// The value of an argument, as the user gave it or as it was made up.
struct ProgramInput {
  planner::BufferId buffer;
  ElementType elementType = ElementType::F32;
  std::vector<std::byte> bytes;
};

class ProgramData {
public:
  /// `inputs` are of host buffers and as large as they.
  ProgramData(const planner::Dag &dag, std::vector<ProgramInput> inputs);

  /// Writes the inputs, and poison (all bits set) to every other host buffer
  /// that is not a constant. Seed 0 gives the values as they are; any other
  /// deals the elements of each floating-point input anew: new data, of the
  /// same range and distribution. Integers stay, as they may be indices.
  void bind(capture::Replayer &replayer, uint64_t seed) const;
  /// Writes to whatever has the buffers.
  using Write = std::function<Result<void>(planner::BufferId,
                                           std::span<const std::byte>)>;
  void bind(const Write &write, uint64_t seed) const;
  /// The bytes of all arguments and results that the program writes.
  std::vector<std::byte> outputs(capture::Replayer &replayer) const;
  using Read =
      std::function<Result<void>(planner::BufferId, std::span<std::byte>)>;
  std::vector<std::byte> outputs(const Read &read) const;
  /// `exact` and `trials` are outputs in f64 and moved by its errors
  /// (kernels/space/ErrorSeeds.h), `expected` those of the reference.
  Tolerances tolerances(std::span<const std::byte> exact,
                        std::span<const std::vector<std::byte>> trials,
                        std::span<const std::byte> expected) const;
  /// WrongResult where any element of `found` has neither the bits that the
  /// reference gave nor, given `tolerances`, is within them. A NaN equals any
  /// NaN.
  Outcome<Agreement> compare(std::span<const std::byte> found,
                             std::span<const std::byte> expected,
                             const Tolerances *tolerances = nullptr) const;
  /// How many elements tolerances() has.
  size_t numFloats() const;
  uint64_t outputBytes() const { return numOutputBytes; }

private:
  const planner::Dag &dag;
  std::vector<ProgramInput> inputs;
  std::vector<planner::BufferId> written, unbound;
  uint64_t numOutputBytes = 0;
};

} // namespace mgpu::tuner

#endif // MGPU_TUNER_CANDIDATE_PROGRAMDATA_H

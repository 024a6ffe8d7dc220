// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_CANDIDATE_PROGRAMDATA_H
#define MGPU_TUNER_CANDIDATE_PROGRAMDATA_H

// Inputs and expected results of a program under tuning.

#include "capture/replay/Replayer.h"
#include "planner/dag/Dag.h"
#include "support/Fault.h"
#include "tuner/candidate/Tolerance.h"

#include <cstddef>
#include <vector>

namespace mgpu::tuner {

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

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_SESSION_PROGRAMDATA_H
#define MGPU_TUNER_SESSION_PROGRAMDATA_H

// What a program under tuning computes from, and what it computes.

#include "capture/replay/Replayer.h"
#include "planner/dag/Dag.h"
#include "tuner/session/Fault.h"

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
  /// that is no constant. Seed 0 gives the values as they are; any other deals
  /// the elements of each floating-point input anew: new data, of the same
  /// range and distribution. Integers stay, as they may be indices.
  void bind(capture::Replayer &replayer, uint64_t seed) const;
  /// The bytes of all arguments and results that the program writes.
  std::vector<std::byte> outputs(capture::Replayer &replayer) const;
  /// WrongResult where `found` differs from what the reference gave in the
  /// bits of any element (docs/numerics.md says why none may); a NaN equals
  /// any NaN.
  Outcome<void> compare(std::span<const std::byte> found,
                        std::span<const std::byte> expected) const;
  uint64_t outputBytes() const { return numOutputBytes; }

private:
  const planner::Dag &dag;
  std::vector<ProgramInput> inputs;
  std::vector<planner::BufferId> written, unbound;
  uint64_t numOutputBytes = 0;
};

} // namespace mgpu::tuner

#endif // MGPU_TUNER_SESSION_PROGRAMDATA_H

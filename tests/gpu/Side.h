// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_GPU_SIDE_H
#define MGPU_TESTS_GPU_SIDE_H

#include "pipeline/program/Load.h"
#include "pipeline/run/Run.h"

#include "capture/replay/Replayer.h"

namespace mgpu::gpu {

struct Seen {
  std::string name;
  ElementType type;
  std::vector<std::byte> bytes;
};

/// A program on one target, with its arguments bound and loaded. Arrays without
/// a value get random numbers, the same on all targets.
class Side {
public:
  /// `useTuned`: as the database has it, where it does.
  static Result<std::unique_ptr<Side>> open(const pipeline::LoadOptions &given,
                                            const std::string &target,
                                            bool useTuned = false);

  /// Every array a user sees.
  Result<std::vector<Seen>> results();

  pipeline::LoadedProgram program;
  std::unique_ptr<device::Driver> driver;
  pipeline::Prepared prepared;
  std::optional<capture::Replayer> replayer;
};

} // namespace mgpu::gpu

#endif // MGPU_TESTS_GPU_SIDE_H

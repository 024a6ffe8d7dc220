// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_RECORD_BUILDERRECORDING_H
#define MGPU_PLANNER_RECORD_BUILDERRECORDING_H

// The calls of a ProgramBuilder, made one after the other on a Recorder. The
// host waits for each, so no two of them race, whatever they touch.

#include "planner/record/ProgramBuilder.h"

namespace mgpu::planner {

class BuilderRecording {
public:
  explicit BuilderRecording(const ProgramBuilder &builder);
  /// After an error the recording is of no more use.
  Result<void> run(const ProgramBuilder::Call &call);
  Result<Program> finish();

private:
  Result<void> make(const BuiltBuffer &buffer, Place place);
  Result<void> make(const BuiltLaunch &launch, Place place);
  Result<void> make(const ProgramBuilder::Copy &copy, Place place);
  Result<void> make(const ProgramBuilder::Fill &fill, Place place);
  Result<void> make(const BuiltCollective &collective, Place place);
  Result<void> make(const std::shared_ptr<ProgramBuilder::Loop> &loop,
                    Place place);
  Result<void> member(const BuiltCollective &call, uint32_t communicator,
                      size_t rank, Place place);
  Result<void> addUse(const BuiltArgument &argument, LaunchSpec &launch,
                      Place place);
  Place placeOf(const ProgramBuilder::Where &where);
  View viewOf(const BuiltView &view) const;
  KernelId kernelOf(BuiltKernel kernel);

  const ProgramBuilder &builder;
  Recorder recorder;
  std::vector<BufferId> ids;                      ///< by BuiltBuffer
  std::vector<std::optional<KernelId>> kernelIds; ///< by BuiltKernel
  std::map<std::vector<DeviceId>, uint32_t> communicators;
  std::map<ProgramBuilder::Where, Place> places;
  std::vector<std::pair<BufferId, std::string>> results;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_RECORD_BUILDERRECORDING_H

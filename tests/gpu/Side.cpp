// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/gpu/Side.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::gpu {

Result<std::unique_ptr<Side>> Side::open(const pipeline::LoadOptions &given,
                                         const std::string &target,
                                         bool useTuned) {
  auto side = std::make_unique<Side>();
  pipeline::LoadOptions options = given;
  options.target = target;
  options.usesRecord = false;
  pipeline::PrepareOptions prepare;
  prepare.useTuned = useTuned;
  MGPU_TRY_ASSIGN(side->program, pipeline::loadProgram(options));
  int seed = 0;
  auto &values = side->program.from.arguments;
  for (const planner::ProgramArgument &argument : side->program.arguments)
    if (argument.buffer && !values.contains(argument.name))
      values[argument.name] = fmt::format("random:{}", seed++);
  const uint32_t devices = side->program.dag.numDevices;
  const bool isGpu = pipeline::isCudaTarget(target);
  if (isGpu) {
    MGPU_TRY_ASSIGN(side->driver, pipeline::openTarget(target, devices));
  }
  MGPU_TRY_ASSIGN(side->prepared,
                  pipeline::prepare(side->program, prepare,
                                    isGpu ? side->driver->architecture() : ""));
  if (!isGpu) {
    pipeline::OpenOptions how;
    how.threads = side->prepared.threads;
    MGPU_TRY_ASSIGN(side->driver, pipeline::openTarget(target, devices, how));
  }
  MGPU_TRY_ASSIGN(
      capture::Replayer replayer,
      capture::Replayer::create(side->program.dag, side->prepared.plan,
                                side->prepared.kernels, *side->driver));
  side->replayer.emplace(std::move(replayer));
  MGPU_TRY_ASSIGN(auto arrays, pipeline::loadArguments(side->program));
  for (const auto &[argument, array] : arrays)
    std::copy(array.bytes.begin(), array.bytes.end(),
              side->replayer->hostBuffer(*argument->buffer).begin());
  MGPU_TRY(side->replayer->load());
  return side;
}

Result<std::vector<Seen>> Side::results() {
  MGPU_TRY(replayer->fetch());
  std::vector<Seen> all;
  for (const auto *list : {&program.arguments, &program.results})
    for (const planner::ProgramArgument &argument : *list)
      if (argument.buffer) {
        auto bytes = replayer->hostBuffer(*argument.buffer);
        all.push_back({argument.name,
                       program.dag.buffer(*argument.buffer).elementType,
                       {bytes.begin(), bytes.end()}});
      }
  return all;
}

} // namespace mgpu::gpu

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/run/Run.h"

#include "bench/measure/Environment.h"
#include "pipeline/build/Kernels.h"
#include "support/Affinity.h"
#include "support/Npy.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::pipeline {

/// An array that is not as large as its buffer.
static tl::unexpected<Error> wrongSize(const ArgumentArray &value,
                                       uint64_t bytes) {
  return fail(ErrorKind::Internal,
              fmt::format("--arg {}: {} bytes for a buffer of {}",
                          value.argument->name, value.value.bytes.size(),
                          bytes));
}

/// A process reads no value of a buffer that another one has.
static IsNeeded isHere(const LoadedProgram &program, Runner &runner) {
  return [&](planner::BufferId id) {
    const planner::Buffer &buffer = program.dag.buffer(id);
    return buffer.sizeBytes == 0 || !buffer.device.isHost() ||
           !runner.hostBuffer(id).empty();
  };
}

Result<void> bindArguments(const LoadedProgram &program, Runner &runner,
                           bool makeUp) {
  MGPU_TRY_ASSIGN(const auto values,
                  loadArguments(program, makeUp, isHere(program, runner)));
  for (const ArgumentArray &each : values) {
    const planner::BufferId id = *each.argument->buffer;
    if (uint64_t bytes = program.dag.buffer(id).sizeBytes;
        each.value.bytes.size() != bytes)
      return wrongSize(each, bytes);
    MGPU_TRY(runner.write(id, each.value.bytes));
  }
  return {};
}

Result<std::vector<MadeRound>> makeRounds(const LoadedProgram &program,
                                          const std::vector<Round> &rounds,
                                          Runner &runner) {
  std::vector<MadeRound> made(rounds.size());
  for (size_t k = 0; k < rounds.size(); ++k) {
    MGPU_TRY_ASSIGN(const auto values,
                    loadRound(program, rounds[k], isHere(program, runner)));
    for (const ArgumentArray &value : values) {
      const planner::BufferId id = *value.argument->buffer;
      if (!program.dag.buffer(id).device.isHost())
        return fail(ErrorKind::Unsupported,
                    fmt::format("argument '{}' lies on a device, and a later "
                                "round takes other values of the host's "
                                "arguments alone",
                                value.argument->name));
      MGPU_TRY_ASSIGN(std::span<std::byte> memory, runner.makeMemory(id));
      if (memory.size() != value.value.bytes.size())
        return wrongSize(value, memory.size());
      std::ranges::copy(value.value.bytes, memory.begin());
      made[k].memory.push_back({id, memory});
    }
  }
  return made;
}

Result<double> runRound(MadeRound &round, uint64_t repeat, Runner &runner,
                        const Replays &replays) {
  Clock::time_point start = Clock::now();
  for (const auto &[id, memory] : round.memory)
    MGPU_TRY(runner.bind(id, memory));
  round.bindUs = microsecondsSince(start);
  round.replayUs.resize(repeat);
  MGPU_TRY(replays(round.replayUs));
  start = Clock::now();
  MGPU_TRY(runner.fetch());
  return microsecondsSince(start);
}

/// Only what is copied to the host can be written.
static Result<void> checkResident(const LoadedProgram &program,
                                  const planner::ProgramArgument &argument,
                                  const std::string &key, bool isLater) {
  if (isLater)
    return fail(ErrorKind::Usage,
                fmt::format("--out {0}: '{1}' is resident, and --out {1} is "
                            "its state after the last round",
                            key, argument.name));
  for (const planner::DagNode &node : program.dag.nodes)
    for (const planner::BufferUse &use : node.uses)
      if (use.buffer == *argument.buffer && use.writes)
        return {};
  return fail(ErrorKind::Usage,
              fmt::format("--out {}: the program never copies the resident "
                          "argument '{}' back to the host, so its state on the "
                          "devices is not there to be written; add an "
                          "mgpu.memcpy or mgpu.gather to it",
                          key, argument.name));
}

Result<void> checkOutputs(const LoadedProgram &program, const Pairs &outputs,
                          bool isLater) {
  for (const auto &[key, file] : outputs) {
    MGPU_TRY_ASSIGN(const auto *argument,
                    findArgument(program, key, "--out", true));
    if (!argument->buffer)
      return fail(ErrorKind::Usage,
                  fmt::format("--out {}: it is a scalar, not an output", key));
    if (argument->role == planner::ArgumentRole::Resident)
      MGPU_TRY(checkResident(program, *argument, key, isLater));
    if (file.size() < 5 || file.compare(file.size() - 4, 4, ".npy") != 0)
      return fail(
          ErrorKind::Usage,
          fmt::format("--out {}={}: outputs are written as .npy", key, file));
  }
  return {};
}

Result<void> writeOutputs(const LoadedProgram &program, const Pairs &outputs,
                          Runner &runner, Written which) {
  for (const auto &[key, file] : outputs) {
    MGPU_TRY_ASSIGN(const auto *argument,
                    findArgument(program, key, "--out", true));
    const bool isResident = argument->role == planner::ArgumentRole::Resident;
    if (which != Written::All && isResident != (which == Written::Residents))
      continue;
    std::vector<std::byte> bytes(
        program.dag.buffer(*argument->buffer).sizeBytes);
    MGPU_TRY(runner.read(*argument->buffer, bytes));
    MGPU_TRY(writeNpy(
        file, Array{argument->elementType, argument->shape, std::move(bytes)}));
  }
  return {};
}

Result<std::unique_ptr<device::Driver>> openHost(const std::string &target,
                                                 uint32_t numDevices,
                                                 OpenOptions open,
                                                 std::vector<int> &cpus) {
  if (open.pins) {
    MGPU_TRY_ASSIGN(cpus, bench::cpusToPin(open.threads));
    open.workerCpus = std::span<const int>(cpus).subspan(1);
  }
  MGPU_TRY_ASSIGN(auto driver, openTarget(target, numDevices, open));
  if (open.pins) // last, as threads are born with what their parent may use
    MGPU_TRY(bench::pinForGood(cpus[0]));
  return driver;
}

Result<std::unique_ptr<Runner>>
openTargetRunner(LoadedProgram &program, const PrepareOptions &prepareOptions,
                 OpenOptions open, Prepared &prepared,
                 const std::function<void()> &opened,
                 tuner::GuardedDriver **guard) {
  const std::string &target = program.from.target;
  const uint32_t devices = program.dag.numDevices;
  const bool onGpu = isCudaTarget(target);
  std::unique_ptr<device::Driver> driver;
  if (onGpu) {
    MGPU_TRY_ASSIGN(open.compile, ownCompilerOf(program));
    MGPU_TRY_ASSIGN(driver, openTarget(target, devices, open));
  } else {
    MGPU_TRY(targetDevices(target, devices));
  }
  opened();
  MGPU_TRY_ASSIGN(prepared, prepare(program, prepareOptions,
                                    onGpu ? driver->architecture() : ""));
  if (!onGpu) {
    if (prepared.threads > 0)
      open.threads = prepared.threads;
    MGPU_TRY_ASSIGN(driver, openHost(target, devices, open, prepared.cpus));
  } else if (open.pins) {
    MGPU_TRY_ASSIGN(prepared.cpus, bench::cpusToPin(1));
    MGPU_TRY(bench::pinForGood(prepared.cpus[0]));
  }
  if (guard) {
    prepared.plan = tuner::spreadBuffers(std::move(prepared.plan), program.dag);
    auto guarded = std::make_unique<tuner::GuardedDriver>(std::move(driver));
    *guard = guarded.get();
    driver = std::move(guarded);
  }
  MGPU_TRY_ASSIGN(capture::Replayer replayer,
                  capture::Replayer::create(program.dag, prepared.plan,
                                            prepared.kernels, *driver, {},
                                            guard ? capture::Arguments::Own
                                                  : capture::Arguments::Later));
  if (guard)
    if (auto armed = (*guard)->arm(prepared.plan, program.dag); !armed)
      return fail(std::move(armed.error()));
  return capture::runOnOneTarget(std::move(driver), std::move(replayer),
                                 program.dag, prepared.plan);
}

Result<void> checkGuard(tuner::GuardedDriver &guard) {
  if (auto intact = guard.check(); !intact)
    return fail(ErrorKind::Invalid,
                fmt::format("--guard: the program {}; compare the kernels' "
                            "indices with their buffers' sizes",
                            intact.error().what));
  return {};
}

} // namespace mgpu::pipeline

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/conformance/Execute.h"

#include "capture/replay/Replayer.h"
#include "device/host/HostDriver.h"
#include "planner/cost/TargetMachine.h"
#include "planner/dag/ProgramText.h"
#include "planner/schedule/list/Schedulers.h"
#include "planner/schedule/transform/Transform.h"
#include "support/ArgumentValue.h"

#include <algorithm>
#include <array>

namespace mgpu::conformance {

using namespace planner;

static bool isVisible(const Buffer &buffer) {
  return buffer.role == BufferRole::Argument ||
         buffer.role == BufferRole::Result;
}

Result<Plan> makePlan(const Dag &dag, const std::string &scheduler) {
  const planner::Machine latency = planner::hostMachine();
  ScheduleOptions options;
  const bool isNamed = scheduler == "serial" || scheduler == "list";
  options.scheduler = isNamed ? scheduler : "shuffled";
  options.seed = isNamed ? 0 : std::stoull(scheduler);
  auto plan = schedule(dag, latency, options);
  if (plan)
    MGPU_TRY(verify(*plan, dag, options.limits));
  return plan;
}

Result<HostData> execute(const Dag &dag, const Plan &plan,
                         const std::vector<std::vector<std::byte>> &objects,
                         const HostData &inputs, uint32_t numThreads,
                         uint32_t numReplays) {
  MGPU_TRY_ASSIGN(auto driver, device::createHostDriver(
                                   std::max(dag.numDevices, 1u), numThreads));
  return execute(dag, plan, objects, inputs, *driver, numReplays);
}

Result<HostData> execute(const Dag &dag, const Plan &plan,
                         const std::vector<std::vector<std::byte>> &objects,
                         const HostData &inputs, device::Driver &driver,
                         uint32_t numReplays) {
  MGPU_TRY_ASSIGN(auto replayer,
                  capture::Replayer::create(dag, plan, objects, driver));
  for (uint32_t b = 0; b < dag.buffers.size(); ++b)
    if (auto given = inputs.find(dag.buffers[b].name);
        given != inputs.end() && isVisible(dag.buffers[b]) &&
        !replayer.hostBuffer({b}).empty()) { // else another process has it
      if (given->second.size() != dag.buffers[b].sizeBytes)
        return fail(ErrorKind::Internal,
                    "argument " + given->first + " has another size");
      std::copy(given->second.begin(), given->second.end(),
                replayer.hostBuffer({b}).begin());
    }
  MGPU_TRY(replayer.load());
  for (uint32_t r = 0; r < numReplays; ++r)
    MGPU_TRY(replayer.replay());
  MGPU_TRY(replayer.fetch());
  HostData data;
  for (uint32_t b = 0; b < dag.buffers.size(); ++b)
    if (isVisible(dag.buffers[b])) {
      auto bytes = replayer.hostBuffer({b});
      data[dag.buffers[b].name].assign(bytes.begin(), bytes.end());
    }
  return data;
}

Result<HostData> randomInputs(const Dag &dag, uint64_t seed) {
  HostData inputs;
  for (const Buffer &buffer : dag.buffers) {
    if (buffer.role != BufferRole::Argument)
      continue;
    MGPU_TRY_ASSIGN(Array array,
                    loadArgument("random:" + std::to_string(seed++),
                                 buffer.elementType, buffer.shape));
    inputs[buffer.name] = std::move(array.bytes);
  }
  return inputs;
}

std::string textFault(const Program &program) {
  Blobs blobs;
  std::string text = toText(program, blobs);
  auto back = readProgram(
      text, [&](const std::string &hash) -> Result<std::vector<std::byte>> {
        return blobs.at(hash);
      });
  if (!back)
    return back.error().message;
  return *back == program ? "" : "it reads back as another program";
}

Result<std::vector<Transformed>> transformed(const Dag &dag) {
  std::vector<Transformed> all;
  for (TransformKind kind : allTransforms) {
    all.push_back({std::string(toString(kind)), dag, 0});
    MGPU_TRY_ASSIGN(all.back().changes, applyTransform(all.back().dag, kind));
  }
  // Numbers of chunks of their own for each group, at odds with each other.
  std::vector<uint32_t> counts;
  for (size_t g = chunkGroups(dag).size(); g > 0; --g)
    counts.push_back(std::array{4u, 1u, 2u, 8u}[g % 4]);
  all.push_back({"chunks of several numbers", dag, 0});
  MGPU_TRY_ASSIGN(
      all.back().changes,
      applyTransform(all.back().dag, {TransformKind::Chunk, counts}));
  all.push_back({"all", dag, 0});
  MGPU_TRY_ASSIGN(all.back().changes,
                  applyTransforms(all.back().dag, allTransforms));
  all.push_back({"all twice", all.back().dag, 0});
  MGPU_TRY_ASSIGN(all.back().changes,
                  applyTransforms(all.back().dag, allTransforms));
  return all;
}

std::string difference(const HostData &expected, const HostData &got) {
  if (expected.size() != got.size())
    return "another number of buffers";
  for (const auto &[name, bytes] : expected) {
    auto at = got.find(name);
    if (at == got.end() || at->second.size() != bytes.size())
      return "buffer '" + name + "' is missing or of another size";
    auto [first, second] =
        std::mismatch(bytes.begin(), bytes.end(), at->second.begin());
    if (first != bytes.end())
      return "buffer '" + name + "' differs from byte " +
             std::to_string(first - bytes.begin()) + " on";
  }
  return "";
}

} // namespace mgpu::conformance

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/record/Keys.h"

#include "planner/dag/ContentHash.h"
#include "planner/dag/PlanPart.h"
#include "support/Assert.h"
#include "support/Sha256.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mgpu::tuner {

using namespace planner;

namespace {

std::string shapeText(std::span<const int64_t> shape, ElementType type) {
  std::string text;
  for (int64_t size : shape)
    text += fmt::format("{}x", size);
  return text + std::string(toString(type));
}

std::string architecture() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    return "x86-64-v4";
  return __builtin_cpu_supports("avx2") ? "x86-64-v3" : "x86-64-v2";
#else
  return "unknown";
#endif
}

db::TuningProblem commonProblem(const KeyInput &input) {
  db::TuningProblem problem;
  if (input.target) {
    problem.device = input.target->device;
    problem.architecture = input.target->architecture;
  } else {
    problem.device = fmt::format("host: {}", input.environment.cpu);
    problem.architecture = architecture();
  }
  problem.policy = policyText(input.coldCaches);
  db::Pairs environment;
  for (auto &[name, value] : input.environment.entries(true))
    if (name != "cpu" || input.target)
      environment[name] = value;
  environment["devices"] = std::to_string(input.devices);
  if (!input.ranks.empty())
    environment["ranks"] = input.ranks;
  problem.environment = db::pairsText(environment);
  return problem;
}

std::string softwareOf(const KeyInput &input) {
  std::string text = "mgpu " + input.version;
  if (input.target && !input.target->software.empty())
    text += ", " + input.target->software;
  return text;
}

std::string driverOf(const KeyInput &input,
                     std::span<const KernelObject> compiled) {
  Sha256 hash;
  for (const KernelObject &object : compiled)
    hash.add(std::span<const std::byte>(*object));
  return fmt::format("{}, kernels {}", softwareOf(input), hash.hex());
}

} // namespace

std::string policyText(bool coldCaches) {
  return fmt::format("{} caches, median of one replay beside the default's in "
                     "turn",
                     coldCaches ? "cold" : "hot");
}

/// Whether a program's replay is not all of it, or not one trip.
static bool isPartOfRun(const Dag &dag) {
  return dag.loop.trips > 1 ||
         std::any_of(dag.nodes.begin(), dag.nodes.end(),
                     [](const DagNode &node) {
                       return partOf(node.phase) != PlanPart::Replay;
                     });
}
static constexpr const char *objective = "objective"; ///< of a shape

db::TuningProblem machineProblem(const KeyInput &input) {
  db::TuningProblem problem = commonProblem(input);
  problem.driver = softwareOf(input);
  return problem;
}

db::TuningProblem programProblem(const KeyInput &input) {
  const Dag &dag = input.dag;
  db::TuningProblem problem = commonProblem(input);
  // The structure stays when sizes change: the steps and the kernels by name.
  Sha256 structure;
  structure.addField(std::to_string(dag.numDevices));
  for (const KernelSpec &kernel : dag.kernels)
    structure.addField(kernel.name);
  for (const DagNode &node : dag.nodes) {
    structure.addField(std::to_string(node.work.index()));
    structure.addField(std::to_string(node.devices.size()));
  }
  problem.program = structure.hex();
  db::Pairs shape{{"content", contentHash(dag)}};
  if (isPartOfRun(dag))
    shape[objective] = "replay";
  for (const Buffer &buffer : dag.buffers)
    if (buffer.device.isHost() && (buffer.role == BufferRole::Argument ||
                                   buffer.role == BufferRole::Result))
      shape[buffer.name] = shapeText(buffer.shape, buffer.elementType);
  problem.shape = db::pairsText(shape);
  problem.driver = driverOf(input, input.compiled);
  return problem;
}

db::TuningProblem decisionProblem(const KeyInput &input) {
  db::TuningProblem problem = programProblem(input);
  problem.policy += decidedSuffix;
  return problem;
}

std::optional<db::TuningProblem> olderDecisionProblem(const KeyInput &input) {
  if (!isPartOfRun(input.dag))
    return std::nullopt;
  db::TuningProblem problem = decisionProblem(input);
  Result<db::Pairs> shape = db::parsePairs(problem.shape);
  MGPU_CHECK(shape, "what pairsText() wrote reads back");
  shape->erase(objective);
  problem.shape = db::pairsText(*shape);
  return problem;
}

db::TuningProblem kernelProblem(const KeyInput &input, KernelId kernel,
                                Dim3 largestGrid) {
  db::TuningProblem problem = commonProblem(input);
  problem.program = kernelPrefix + input.dag.kernels[kernel.value].hash;
  problem.shape =
      db::pairsText({{"grid", fmt::format("{}x{}x{}", largestGrid.x,
                                          largestGrid.y, largestGrid.z)}});
  problem.driver = driverOf(input, input.compiled.subspan(kernel.value, 1));
  problem.policy += "; sum of the kernel's nodes";
  return problem;
}

} // namespace mgpu::tuner

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/plan/ProgramPlan.h"

#include "pipeline/target/OpenMachine.h"
#include "pipeline/target/Target.h"
#include "planner/dag/Dag.h"
#include "support/FileIO.h"
#include "support/Units.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace mgpu::pipeline {

namespace {

using Group = std::vector<DeviceId>;

/// How many machines `group` is on where it begins at device `first`.
size_t machinesAt(const Group &group, uint32_t first, uint32_t perMachine) {
  std::set<uint32_t> machines;
  for (DeviceId device : group)
    machines.insert((uint32_t(device.value) + first) / perMachine);
  return machines.size();
}

/// Puts `group`, which has device 0, at the first device that is in none yet,
/// until all are in one.
bool isAlike(const Group &group, uint32_t numDevices, uint32_t perMachine) {
  std::vector<bool> isIn(numDevices);
  const size_t machines = machinesAt(group, 0, perMachine);
  for (uint32_t first = 0; first < numDevices; ++first) {
    if (isIn[first])
      continue;
    for (DeviceId device : group) {
      const uint32_t at = uint32_t(device.value) + first;
      if (at >= numDevices || isIn[at])
        return false;
      isIn[at] = true;
    }
    if (machinesAt(group, first, perMachine) != machines)
      return false;
  }
  return true;
}

bool isCollective(const planner::DagNode &node) {
  const auto *call = std::get_if<planner::OpaqueCall>(&node.work);
  return call && call->isCollective;
}

/// Between two collectives a program has all of one device before all of the
/// next, so what one writes to the host's memory and others read there makes
/// them wait for it.
Result<void> checkHost(const planner::Dag &dag) {
  std::set<std::pair<uint32_t, uint32_t>> read, written; ///< part, buffer
  uint32_t part = 0;
  for (const planner::DagNode &node : dag.nodes) {
    part += isCollective(node);
    for (const planner::BufferUse &use : node.uses)
      if (dag.buffer(use.buffer).device.isHost()) {
        if (use.reads)
          read.insert({part, use.buffer.value});
        if (use.writes)
          written.insert({part, use.buffer.value});
      }
  }
  for (const auto &each : written)
    if (read.contains(each))
      return fail(ErrorKind::Unsupported,
                  fmt::format("'{}' is read and written in the host's memory, "
                              "by way of which devices wait for each other, so "
                              "that one does not stand for all: plan without "
                              "--one-device",
                              dag.buffers[each.second].name));
  return {};
}

/// Whether device 0 of a program stands for all on a machine: each collective's
/// group repeats over the devices, and spans as many machines wherever it
/// stands, and nothing in the host's memory makes devices wait for each other.
/// Errors: Unsupported.
Result<void> checkAlike(const planner::Dag &dag, uint32_t devicesPerMachine) {
  MGPU_TRY(checkHost(dag));
  std::set<std::vector<int32_t>> seen;
  for (const planner::DagNode &node : dag.nodes) {
    std::vector<int32_t> devices;
    for (DeviceId device : node.devices)
      devices.push_back(device.value);
    if (!isCollective(node) || !seen.insert(devices).second)
      continue;
    if (!isAlike(node.devices, dag.numDevices, std::max(devicesPerMachine, 1u)))
      return fail(ErrorKind::Unsupported,
                  fmt::format("'{}' at {}: its groups of {} devices lie on "
                              "other numbers of machines, so that one device "
                              "does not stand for all: plan without "
                              "--one-device",
                              node.name, node.location, devices.size()));
  }
  return {};
}

} // namespace

using namespace planner;

Result<void> checkScheduler(const PlanOptions &options,
                            const std::set<std::string> &given) {
  if (given.contains("--seed") && options.scheduler != "shuffled")
    return fail(ErrorKind::Usage, fmt::format("--seed is of --scheduler "
                                              "shuffled, and not of {}",
                                              options.scheduler));
  if (given.contains("--streams") && options.streams > 1 &&
      options.scheduler == "serial")
    return fail(ErrorKind::Usage,
                fmt::format("--streams {}: --scheduler serial runs one node "
                            "after the other; leave one of them out",
                            options.streams));
  return {};
}

/// Applies transforms, and gives back the names of those that changed the DAG,
/// as a plan keeps them.
static Result<std::vector<std::string>>
applyAll(Dag &dag, const std::vector<Transform> &transforms) {
  std::vector<std::string> names;
  for (const Transform &transform : transforms) {
    MGPU_TRY_ASSIGN(uint32_t changes, applyTransform(dag, transform));
    if (changes > 0)
      names.emplace_back(toString(transform));
  }
  return names;
}

/// The transforms that --transforms asks for. The scheduler says how free the
/// plan is where the list does not.
static Result<TransformChoice> chosenTransforms(const PlanOptions &options) {
  std::string list = options.transforms;
  if (list == "auto" || list == "none")
    return TransformChoice();
  MGPU_TRY(parseTransforms(list)); // as it was given
  // "auto" changes no program here.
  if (list.starts_with("auto,"))
    list.replace(0, 4, "none");
  else if (list.starts_with('-'))
    list.insert(0, "none,");
  MGPU_TRY_ASSIGN(TransformChoice choice, parseTransforms(list));
  if (choice.namesPolicy && options.scheduler != "list")
    return fail(ErrorKind::Usage,
                fmt::format("--transforms {}: order, early and nofork are of "
                            "--scheduler list",
                            options.transforms));
  return choice;
}

/// The machine of a request.
static Result<const Machine *> machineOf(const LoadedProgram &program,
                                         const MachineRequest &request,
                                         std::optional<Machine> &found) {
  std::optional<Machine> &machine = request.machine ? *request.machine : found;
  if (!machine) {
    MGPU_TRY_ASSIGN(machine,
                    openMachine(program.from.target, program.dag.numDevices,
                                request.plan.collectivesFile,
                                program.from.database));
  }
  if (program.from.oneDevice)
    MGPU_TRY(checkAlike(program.dag, machine->topology().devicesPerNode()));
  return &*machine;
}

/// `memory` is in bytes of each device; 0 stands for what the options say.
static Result<TargetPlan> planDag(const LoadedProgram &program,
                                  const Machine &machine,
                                  const MachineRequest &request,
                                  uint64_t memory = 0) {
  const PlanOptions &plan = request.plan;
  const bool isHere = !isElsewhere(program.from.target);
  planner::PlanRequest target;
  MGPU_TRY_ASSIGN(target.memoryBytes,
                  memoryLimit(machine.topology(), plan.memory));
  if (memory > 0)
    target.memoryBytes = memory;
  if (target.memoryBytes <= request.workspace)
    return fail(ErrorKind::Invalid,
                fmt::format("cuBLASLt needs {} bytes of each device, which has "
                            "{}: allow more --memory, or use "
                            "--variant cublaslt=off",
                            request.workspace, target.memoryBytes));
  target.memoryBytes -= request.workspace;
  target.scheduler = plan.scheduler;
  target.streamsPerDevice = streamsOf(program.from.target, plan.streams);
  target.seed = isHere && plan.scheduler != "shuffled" ? 1 : plan.seed;
  target.makesAll = isHere;
  MGPU_TRY_ASSIGN(TransformChoice choice,
                  isHere ? chosenTransforms(plan)
                         : parseTransforms(plan.transforms));
  target.transforms = std::move(choice.transforms);
  target.schedulePolicy = choice.schedulePolicy;
  target.ops = request.ops;
  if (plan.budget.empty() && isHere)
    return planner::makePlan(program.dag, machine, target);
  MGPU_TRY_ASSIGN(SearchBudget budget,
                  parseBudget(plan.budget.empty() ? "1s" : plan.budget));
  exact::Budget search(budget.seconds, budget.evaluations);
  return planner::makePlan(program.dag, machine, target, &search);
}

static Result<std::optional<Plan>> storedPlan(LoadedProgram &program,
                                              const PlanOptions &options) {
  if (!options.planFile.empty())
    return readPlan(options.planFile, program.dag);
  if (program.bundle && !options.isChosen)
    return program.bundle->plan();
  if (options.mustBeStored && !program.bundle)
    return fail(ErrorKind::Usage,
                fmt::format("'{}' has no plan of its own: give --plan FILE, as "
                            "`mgpu-tune plan -o FILE` writes it, or a bundle",
                            program.from.file));
  return std::optional<Plan>();
}

Result<TargetPlan> makePlan(LoadedProgram &program,
                            const MachineRequest &request) {
  TargetPlan made;
  if (!isElsewhere(program.from.target)) {
    MGPU_TRY_ASSIGN(auto stored, storedPlan(program, request.plan));
    if (stored) {
      made.plan = std::move(*stored);
      return made;
    }
  }
  std::optional<Machine> found;
  MGPU_TRY_ASSIGN(const Machine *machine, machineOf(program, request, found));
  MGPU_TRY_ASSIGN(made, planDag(program, *machine, request));
  if (made.dag)
    program.dag = std::move(*made.dag);
  return made;
}

Result<Plan> readPlan(const std::string &path, Dag &dag,
                      std::optional<std::string_view> text) {
  std::vector<std::byte> bytes;
  if (!text) {
    MGPU_TRY_ASSIGN(bytes, readFile(path));
    text = {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
  }
  auto wrong = [&](const Error &error) {
    return fail(error.kind, fmt::format("{}: {}", path, error.message));
  };
  auto names = parsePlanTransforms(*text);
  if (!names)
    return wrong(names.error());
  std::vector<Transform> transforms;
  for (const std::string &name : *names) {
    auto transform = parseTransform(name);
    if (!transform)
      return fail(ErrorKind::Invalid,
                  fmt::format("{}: it was made after transform \"{}\", which "
                              "this version does not have",
                              path, name));
    transforms.push_back(std::move(*transform));
  }
  if (auto made = applyAll(dag, transforms); !made)
    return wrong(made.error());
  auto plan = parsePlan(*text, dag);
  if (!plan)
    return wrong(plan.error());
  if (auto ok = verify(*plan, dag); !ok)
    return fail(ErrorKind::Invalid,
                fmt::format("{}: unsafe plan: {}", path, ok.error().message));
  return plan;
}

/// The bytes of the fullest device, resident ones included.
static uint64_t memoryOf(const TargetPlan &plan, const Dag &dag) {
  if (plan.overlap)
    return plan.overlap->peakBytes;
  return largestArena(plan.plan) + dag.residentBytes;
}

Result<Front> makeFront(const LoadedProgram &program,
                        const MachineRequest &request) {
  constexpr double step = 0.9;
  const Dag &dag = program.dag;
  std::optional<Machine> found;
  MGPU_TRY_ASSIGN(const Machine *machine, machineOf(program, request, found));
  Front front;
  uint64_t limit = 0;
  do {
    auto plan = planDag(program, *machine, request, limit);
    if (!plan &&
        (front.points.empty() || plan.error().kind != ErrorKind::Invalid))
      return fail(plan.error());
    if (!plan) {
      front.stopped = plan.error().message;
      break;
    }
    FrontPoint point{
        memoryOf(*plan, plan->dag ? *plan->dag : dag) + request.workspace,
        plan->plan.makespanUs, plan->contendedUs, plan->plan.lowerBoundUs,
        // See planner::makePlan().
        dag.spmd ? plan->plan.makespanUs : plan->contendedUs,
        plan->plan.transforms};
    limit = uint64_t(double(point.memory) * step);
    while (!front.points.empty() &&
           front.points.back().chosenUs >= point.chosenUs)
      front.points.pop_back();
    front.points.push_back(std::move(point));
  } while (limit > 0);
  return front;
}

} // namespace mgpu::pipeline

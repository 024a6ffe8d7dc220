// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/space/ProgramSpace.h"

#include "kernels/compile/CudaConfig.h"
#include "planner/schedule/MakePlan.h"
#include "planner/schedule/ProgramSearch.h"
#include "support/Number.h"
#include "support/Random.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::tuner {

using namespace planner;

namespace {

enum PlanParameter : uint32_t {
  Scheduler,
  Streams,
  Threads,
  Seed,
  Order,
  Early,
  FirstTransform, ///< then the settings, then the kernels
};
constexpr const char *schedulers[] = {"list", "serial"};
constexpr uint32_t streamCounts[] = {1, 2, 4, 8};
constexpr uint32_t numSeeds = 16;
// Pairs of the schedule policies that are not taken, and their values.
constexpr const char *orderName = "order", *orderKept = "program";
constexpr const char *earlyName = "early", *earlyOff = "off";

std::string kernelKey(const Dag &dag, size_t kernel) {
  return kernelKeyPrefix + dag.kernels[kernel].name;
}

} // namespace

db::Pairs toPairs(const ProgramConfig &config, const Dag &dag,
                  std::span<const kernels::KernelSpace> kernels) {
  db::Pairs pairs{{"scheduler", config.scheduler},
                  {"streams", std::to_string(config.streams)},
                  {"threads", std::to_string(config.threads)},
                  {"seed", std::to_string(config.seed)}};
  if (!config.schedulePolicy.order)
    pairs[orderName] = orderKept;
  if (!config.schedulePolicy.early)
    pairs[earlyName] = earlyOff;
  addPairs(config.transforms, pairs);
  pairs.insert(config.settings.begin(), config.settings.end());
  for (size_t k = 0; k < config.kernels.size(); ++k)
    if (config.kernels[k] != kernels[k].defaults)
      pairs[kernelKey(dag, k)] = toText(config.kernels[k]);
  return pairs;
}

/// The pairs that are settings of the target. Invalid for a value that a
/// setting does not have, or its default.
static Result<std::map<std::string, std::string>>
settingsFrom(const db::Pairs &pairs, std::span<const TargetSetting> settings) {
  std::map<std::string, std::string> found;
  for (const TargetSetting &setting : settings)
    if (auto at = pairs.find(setting.name); at != pairs.end()) {
      auto value =
          std::find(setting.values.begin(), setting.values.end(), at->second);
      if (value == setting.values.end() || value == setting.values.begin())
        return fail(ErrorKind::Invalid,
                    fmt::format("a stored configuration has {}={}, which this "
                                "target does not have",
                                setting.name, at->second));
      found.insert(*at);
    }
  return found;
}

Result<ProgramConfig> fromPairs(const db::Pairs &pairs, const Dag &dag,
                                std::span<const kernels::KernelSpace> kernels,
                                std::span<const TargetSetting> settings) {
  ProgramConfig config;
  auto number = [&](const char *name, auto &into) -> Result<void> {
    auto at = pairs.find(name);
    if (at == pairs.end())
      return fail(ErrorKind::Invalid,
                  fmt::format("a stored configuration has no '{}'", name));
    auto value =
        numberFrom<std::remove_reference_t<decltype(into)>>(at->second);
    if (!value)
      return fail(
          ErrorKind::Invalid,
          fmt::format("a stored configuration has {}={}, which is not a "
                      "number",
                      name, at->second));
    into = *value;
    return {};
  };
  MGPU_TRY(number("streams", config.streams));
  // Earlier versions called it lanes.
  const char *threads = pairs.contains("lanes") ? "lanes" : "threads";
  MGPU_TRY(number(threads, config.threads));
  MGPU_TRY(number("seed", config.seed));
  auto scheduler = pairs.find("scheduler");
  if (scheduler == pairs.end() ||
      std::find(std::begin(schedulers), std::end(schedulers),
                scheduler->second) == std::end(schedulers))
    return fail(ErrorKind::Invalid,
                "a stored configuration names no scheduler there is");
  config.scheduler = scheduler->second;
  auto isTaken = [&](const char *name, const char *value,
                     bool &taken) -> Result<void> {
    auto at = pairs.find(name);
    taken = at == pairs.end();
    if (!taken && at->second != value)
      return fail(
          ErrorKind::Invalid,
          fmt::format("a stored configuration has {}={}, which is not a valid "
                      "choice",
                      name, at->second));
    return {};
  };
  MGPU_TRY(isTaken(orderName, orderKept, config.schedulePolicy.order));
  MGPU_TRY(isTaken(earlyName, earlyOff, config.schedulePolicy.early));
  MGPU_TRY_ASSIGN(config.transforms, transformsFrom(pairs));
  db::Pairs ofTransforms;
  addPairs(config.transforms, ofTransforms);
  MGPU_TRY_ASSIGN(config.settings, settingsFrom(pairs, settings));
  size_t numRead = 4 + ofTransforms.size() + config.settings.size() +
                   !config.schedulePolicy.order + !config.schedulePolicy.early;
  for (size_t k = 0; k < dag.kernels.size(); ++k) {
    config.kernels.push_back(kernels[k].defaults);
    auto at = pairs.find(kernelKey(dag, k));
    if (at == pairs.end())
      continue;
    ++numRead;
    MGPU_TRY_ASSIGN(
        config.kernels.back(),
        kernels::parseKernelConfig(at->second, kernels[k].defaults));
    MGPU_TRY(kernels[k].check(config.kernels.back()));
  }
  if (numRead != pairs.size())
    return fail(ErrorKind::Invalid, "a stored configuration refers to unknown "
                                    "kernels, transforms or settings");
  return config;
}

Result<Plan> planOf(const Dag &dag, const ProgramConfig &config,
                    const Machine &machine, bool isTuned) {
  const bool isRetimed = isTuned && machine.numMeasured() > 0;
  PlanRequest request;
  request.scheduler = config.scheduler;
  request.seed = 1;
  request.drawn = config.seed;
  request.streamsPerDevice = config.streams;
  request.schedulePolicy = config.schedulePolicy;
  MGPU_TRY_ASSIGN(
      TargetPlan made,
      makePlan(dag, isRetimed ? machine.withTimes({}) : machine, request));
  if (isRetimed) {
    retime(made.plan, dag, machine);
    MGPU_TRY_ASSIGN(const planner::ProgramModel model,
                    planner::modelOf(dag, machine));
    setBound(made.plan, model.bound.us, model.bound.by);
  }
  for (const Transform &transform : config.transforms)
    made.plan.transforms.push_back(toString(transform));
  return std::move(made.plan);
}

std::vector<SpaceParameter> describeSpace(const kernels::KernelSpace &kernel) {
  std::vector<SpaceParameter> found;
  for (const kernels::KernelAxis &axis : kernel.axes) {
    SpaceParameter &each = found.emplace_back(axis.name);
    each.reason = axis.reason;
    for (uint32_t value : axis.values)
      each.values.push_back(std::to_string(value));
  }
  return found;
}

/// Where `value` is among the values of a parameter.
static std::optional<uint16_t> positionOf(const Parameter &parameter,
                                          double value) {
  auto at =
      std::lower_bound(parameter.values.begin(), parameter.values.end(), value);
  if (at == parameter.values.end() || *at != value)
    return std::nullopt;
  return uint16_t(at - parameter.values.begin());
}

Result<ConfigSpace> spaceOf(const kernels::KernelSpace &kernel,
                            const device::DeviceProfile *gpu) {
  std::vector<Parameter> parameters;
  for (const auto &[name, values, reason] : kernel.axes) {
    parameters.push_back({name, {values.begin(), values.end()}, {}});
    // A tunable's own order begins with the default.
    std::ranges::sort(parameters.back().values);
  }
  constexpr uint64_t most = 10'000'000;
  const std::vector<kernels::KernelConfig> legal =
      gpu ? kernels::onDevice(kernel, *gpu).legal(most + 1)
          : kernel.legal(most + 1);
  if (legal.size() > most)
    return fail(ErrorKind::Unsupported,
                fmt::format("a kernel has more than {} legal configurations; "
                            "give its tunables fewer values",
                            most));
  if (legal.empty())
    return fail(ErrorKind::Invalid,
                "no configuration of a kernel fits the GPU");
  std::vector<uint16_t> points;
  points.reserve(legal.size() * parameters.size());
  for (const kernels::KernelConfig &config : legal)
    for (size_t k = 0; k < parameters.size(); ++k)
      points.push_back(*positionOf(parameters[k], config.at(k)));
  return ConfigSpace::fromPoints(std::move(parameters), std::move(points));
}

kernels::KernelConfig kernelConfigAt(const ConfigSpace &space, ConfigId id) {
  kernels::KernelConfig config;
  config.numTunables =
      space.numParameters() - uint32_t(kernels::numKernelParameters);
  for (uint32_t k = 0; k < space.numParameters(); ++k)
    config.at(k) = uint32_t(space.value(id, k));
  return config;
}

std::optional<ConfigId> findConfig(const ConfigSpace &space,
                                   const kernels::KernelConfig &config) {
  std::vector<uint16_t> positions;
  if (space.numParameters() != config.numAxes())
    return std::nullopt;
  for (uint32_t k = 0; k < space.numParameters(); ++k) {
    auto position = positionOf(space.parameter(k), config.at(k));
    if (!position)
      return std::nullopt;
    positions.push_back(*position);
  }
  return space.find(positions);
}

/// Numbers of streams that a target has room for.
static std::vector<double> streamsUpTo(uint32_t most) {
  std::vector<double> counts;
  for (uint32_t count : streamCounts)
    if (count == 1 || count <= most)
      counts.push_back(count);
  return counts;
}

double ProgramSpace::numPlans(size_t numLists,
                              std::span<const TargetSetting> settings,
                              const SpaceLimits &limits) {
  double plans = double(numLists) *
                 (double(streamsUpTo(limits.mostStreams).size()) *
                      std::max(limits.mostThreads, 1u) * (numSeeds + 1) * 2 +
                  1);
  for (const TargetSetting &setting : settings)
    plans *= double(setting.values.size());
  return plans;
}

uint32_t ProgramSpace::firstSetting() const {
  return FirstTransform + uint32_t(transforms.parameters().size());
}

uint32_t ProgramSpace::firstKernel() const {
  return firstSetting() + uint32_t(settings.size());
}

Result<ProgramSpace>
ProgramSpace::create(const Dag &dag, std::vector<TransformList> lists,
                     std::vector<TargetSetting> settings,
                     std::vector<std::vector<kernels::KernelConfig>> chosen,
                     const SpaceLimits &limits) {
  std::vector<Parameter> parameters(FirstTransform);
  parameters[Scheduler] = {"scheduler", {0, 1}, {"list", "serial"}};
  parameters[Streams] = {"streams", streamsUpTo(limits.mostStreams), {}};
  parameters[Threads] = {"threads", {}, {}};
  for (uint32_t threads = 1; threads <= std::max(limits.mostThreads, 1u);
       ++threads)
    parameters[Threads].values.push_back(threads);
  parameters[Seed] = {"seed", {}, {}};
  for (uint32_t seed = 0; seed < numSeeds; ++seed) {
    parameters[Seed].values.push_back(seed);
    parameters[Seed].labels.push_back(std::to_string(seed));
  }
  parameters[Order] = {orderName, {0, 1}, {"chosen", orderKept}};
  parameters[Early] = {earlyName, {0, 1}, {"on", earlyOff}};
  auto addLabelled = [&](std::string name, std::vector<std::string> labels) {
    Parameter &parameter = parameters.emplace_back();
    parameter.name = std::move(name);
    parameter.labels = std::move(labels);
    for (size_t k = 0; k < parameter.labels.size(); ++k)
      parameter.values.push_back(double(k));
  };
  std::vector<Constraint> constraints = {
      {"a serial plan has one stream and no priorities, and runs on one thread",
       {Scheduler, Streams, Threads, Seed, Order, Early},
       [](std::span<const double> v) {
         return v[0] == 0 ||
                (v[1] == 1 && v[2] == 1 && v[3] == 0 && v[4] == 0 && v[5] == 0);
       }},
      {"the program's own order needs no priorities",
       {Seed, Order},
       [](std::span<const double> v) { return v[1] == 0 || v[0] == 0; }}};
  TransformChoices transforms(std::move(lists));
  std::vector<uint32_t> transformsAt;
  for (const Parameter &parameter : transforms.described()) {
    transformsAt.push_back(uint32_t(parameters.size()));
    parameters.push_back(parameter);
    // Asked of each front, so that the walk does not go on from one that no
    // list has.
    constraints.push_back({"every transform changes something", transformsAt,
                           [&transforms](std::span<const double> values) {
                             return transforms.begins(values);
                           }});
  }
  for (const TargetSetting &setting : settings)
    addLabelled(setting.name, setting.values);
  for (size_t k = 0; k < chosen.size(); ++k) {
    std::vector<std::string> labels;
    for (const kernels::KernelConfig &config : chosen[k])
      labels.push_back(toText(config));
    addLabelled(kernelKey(dag, k), std::move(labels));
  }
  MGPU_TRY_ASSIGN(ConfigSpace space,
                  ConfigSpace::generate(std::move(parameters), constraints));
  return ProgramSpace(std::move(space), std::move(transforms),
                      std::move(settings), std::move(chosen));
}

ProgramConfig ProgramSpace::at(ConfigId id) const {
  ProgramConfig config;
  auto value = [&](uint32_t p) { return uint32_t(space.value(id, p)); };
  config.scheduler = schedulers[value(Scheduler)];
  config.streams = value(Streams);
  config.threads = value(Threads);
  config.seed = value(Seed);
  config.schedulePolicy.order = value(Order) == 0;
  config.schedulePolicy.early = value(Early) == 0;
  std::vector<double> switches;
  for (uint32_t p = FirstTransform; p < firstSetting(); ++p)
    switches.push_back(space.value(id, p));
  config.transforms = *transforms.find(switches);
  for (uint32_t s = 0; s < settings.size(); ++s)
    if (const uint32_t v = value(firstSetting() + s); v > 0)
      config.settings.emplace(settings[s].name, settings[s].values[v]);
  for (size_t k = 0; k < chosen.size(); ++k)
    config.kernels.push_back(chosen[k][value(firstKernel() + uint32_t(k))]);
  return config;
}

std::optional<ConfigId> ProgramSpace::find(const ProgramConfig &config) const {
  std::vector<uint16_t> positions(space.numParameters());
  auto place = [&](uint32_t parameter, double value) {
    auto position = positionOf(space.parameter(parameter), value);
    positions[parameter] = position.value_or(0);
    return position.has_value();
  };
  const auto switches = transforms.valuesOf(config.transforms);
  if (!place(Scheduler, config.scheduler == "serial") ||
      !place(Streams, config.streams) || !place(Threads, config.threads) ||
      !place(Seed, double(config.seed)) ||
      !place(Order, !config.schedulePolicy.order) ||
      !place(Early, !config.schedulePolicy.early) || !switches ||
      config.kernels.size() != chosen.size())
    return std::nullopt;
  for (size_t t = 0; t < switches->size(); ++t)
    place(FirstTransform + uint32_t(t), (*switches)[t]);
  size_t known = 0;
  for (uint32_t s = 0; s < settings.size(); ++s) {
    const std::vector<std::string> &values = settings[s].values;
    auto given = config.settings.find(settings[s].name);
    known += given != config.settings.end();
    auto at = given == config.settings.end()
                  ? values.begin()
                  : std::find(values.begin(), values.end(), given->second);
    if (at == values.end())
      return std::nullopt;
    positions[firstSetting() + s] = uint16_t(at - values.begin());
  }
  if (known != config.settings.size())
    return std::nullopt;
  for (size_t k = 0; k < chosen.size(); ++k) {
    auto at = std::find(chosen[k].begin(), chosen[k].end(), config.kernels[k]);
    if (at == chosen[k].end())
      return std::nullopt;
    positions[firstKernel() + k] = uint16_t(at - chosen[k].begin());
  }
  return space.find(positions);
}

std::vector<SpaceParameter> ProgramSpace::describe() const {
  std::vector<SpaceParameter> found;
  for (uint32_t p = 0; p < firstKernel(); ++p) {
    const Parameter &parameter = space.parameter(p);
    SpaceParameter &each = found.emplace_back();
    each.name = parameter.name;
    for (uint32_t v = 0; v < parameter.values.size(); ++v)
      each.values.push_back(parameter.textOf(v));
    if (p >= firstSetting())
      each.reason = settings[p - firstSetting()].reason;
  }
  return found;
}

} // namespace mgpu::tuner

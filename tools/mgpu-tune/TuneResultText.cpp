// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prints what `tune` found, for people and as JSON.
#include "tools/mgpu-tune/TuneResultText.h"
#include "support/Plural.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <map>

namespace mgpu::tools {

using nlohmann::json;
using tuner::TuningResult;

namespace {

json toJson(const std::vector<TuningResult::Part> &parts) {
  json out = json::array();
  for (const TuningResult::Part &part : parts) {
    json parameters = json::array();
    for (const tuner::SpaceParameter &parameter : part.parameters) {
      json &each = parameters.emplace_back(
          json{{"name", parameter.name}, {"values", parameter.values}});
      if (!parameter.reason.empty())
        each["reason"] = parameter.reason;
    }
    out.push_back({{"of", part.name},
                   {"points", part.points},
                   {"tried", part.tried},
                   {"coverage", double(part.tried) / part.points},
                   {"parameters", std::move(parameters)}});
  }
  return out;
}

/// "kernels alone 312 of 1300, together 220 of 5.3e+05"
std::string coverageText(const std::vector<TuningResult::Part> &parts) {
  double points = 0;
  uint64_t tried = 0;
  std::string together;
  for (const TuningResult::Part &part : parts) {
    if (&part == &parts.back()) {
      together = fmt::format("together {} of {:.3g}", part.tried, part.points);
      continue;
    }
    points += part.points;
    tried += part.tried;
  }
  return parts.size() > 1 ? fmt::format("kernels alone {} of {:.3g}, {}", tried,
                                        points, together)
                          : together;
}

} // namespace

json toJson(const TuningResult &result, const LoadedProgram &program,
            const TuneContext &context, const std::string &path,
            const std::string &planOf) {
  json config = json::object();
  for (auto &[name, value] :
       tuner::toPairs(result.config, program.dag, context.spaces))
    config[name] = value;
  json failures = json::array();
  for (const tuner::FailedCandidate &failed : result.failed)
    failures.push_back({{"configuration", failed.configuration},
                        {"kind", toString(failed.fault.kind)},
                        {"what", failed.fault.what}});
  json environment = json::object();
  for (auto &[name, value] : context.environment.entries())
    environment[name] = value;
  if (!result.pinnedCpus.empty())
    environment["pinned_cpus"] = result.pinnedCpus;
  json history = json::array();
  for (const TuningResult::Step &step : result.history)
    history.push_back({{"seconds", step.seconds},
                       {"evaluation", step.evaluation},
                       {"best_us", step.bestUs}});
  json out{{"configuration", config},
           {"is_default", result.isDefault},
           {"from_database", result.fromStore},
           {"interrupted", result.interrupted},
           {"exhausted", result.exhausted},
           {"times", tuner::toJson(result.times)},
           {"default_us", result.times.before.us},
           {"tuned_us", result.times.after.us},
           {"comparison", result.times.sentence},
           {"plan", planOf},
           {"agreement", toText(result.agreement)},
           {"tolerance_share", result.agreement.share},
           {"space", result.spaceSize},
           {"transform_sets", result.numTransformLists},
           {"spaces", toJson(result.parts)},
           {"evaluated", result.evaluated},
           {"resumed", result.resumed},
           {"compiled", result.compiled},
           {"seconds", result.seconds},
           {"failed", failures},
           {"history", history},
           {"database", path},
           {"environment", environment}};
  if (const auto &change = result.times.change)
    out["change_percent"] = {{"middle", 100 * change->middle},
                             {"low", 100 * change->low},
                             {"high", 100 * change->high},
                             {"verdict", result.times.verdict},
                             {"pairs", result.times.pairs},
                             {"processes", result.times.processes}};
  return out;
}

void print(const TuningResult &result, const LoadedProgram &program,
           const TuneContext &context, const std::string &path,
           const std::string &planOf) {
  fmt::print("{} on {}: {} device{}", program.from.file,
             context.target ? context.target->device : "host", context.devices,
             context.devices == 1 ? "" : "s");
  if (context.target)
    fmt::print("\n");
  else
    fmt::print(", up to {} thread{}\n", context.limits.mostThreads,
               context.limits.mostThreads == 1 ? "" : "s");
  if (!result.fromStore) {
    std::map<std::string_view, int> kinds;
    for (const tuner::FailedCandidate &failed : result.failed)
      ++kinds[toString(failed.fault.kind)];
    std::string failures;
    for (auto &[kind, count] : kinds)
      failures += fmt::format(", {} {}", count, kind);
    fmt::print(
        "space    {:.3g} configurations ({}): {} tried{}, {} "
        "compiled, {} known before, {:.1f} s{}\n",
        result.spaceSize,
        result.numTransformLists > 1
            ? fmt::format("{} sets of transforms", result.numTransformLists)
            : "no transform applies",
        result.evaluated, failures, counted(result.compiled, "kernel"),
        counted(result.resumed, "result"), result.seconds,
        result.interrupted ? ", interrupted"
        : result.exhausted ? ", nothing left to try"
                           : "");
    fmt::print("coverage {}\n", coverageText(result.parts));
  }
  fmt::print("{}", decidedText(result.times));
  if (!result.agreement.isSameBits())
    fmt::print("result   {} (docs/numerics.md)\n", toText(result.agreement));
  if (!result.onlyBits.empty())
    fmt::print("no tolerance: candidates had to give the reference's bits, as "
               "{}\n",
               result.onlyBits);
  fmt::print("plan     {}\n", planOf);
  if (result.isDefault)
    fmt::print("keep     the default\n");
  else
    fmt::print("use      {}", describeConfig(result.config, program.dag,
                                             context.spaces, "         ")
                                  .substr(9));
  if (!path.empty())
    fmt::print("{}    {}\n", result.fromStore ? "found" : "stored", path);
}

} // namespace mgpu::tools

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/record/DecidedTimes.h"

#include "support/Units.h"

#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mgpu::tuner {

using nlohmann::json;

Measured measuredOf(const bench::Summary &seconds) {
  const bench::Interval &median = seconds.median;
  Measured out{median.middle * 1e6, median.low * 1e6, median.high * 1e6,
               seconds.count};
  if (!std::isfinite(out.lowUs) || !std::isfinite(out.highUs))
    out.lowUs = out.highUs = out.us;
  return out;
}

static json toJson(const Measured &measured) {
  return {{"median_us", measured.us},
          {"low_us", measured.lowUs},
          {"high_us", measured.highUs},
          {"samples", measured.samples}};
}

static Measured measuredFromJson(const json &from) {
  return {from.at("median_us").get<double>(), from.at("low_us").get<double>(),
          from.at("high_us").get<double>(), from.at("samples").get<uint64_t>()};
}

json toJson(const DecidedTimes &times) {
  json out{{"default", toJson(times.before)},
           {"tuned", toJson(times.after)},
           {"pairs", times.pairs},
           {"processes", times.processes},
           {"verdict", times.verdict},
           {"comparison", times.sentence},
           {"undecided", times.isUndecided},
           {"warnings", times.warnings},
           {"change", nullptr}};
  if (times.change)
    out["change"] = {times.change->middle, times.change->low,
                     times.change->high};
  return out;
}

std::optional<DecidedTimes> decidedTimesFromJson(const json &from) {
  try {
    DecidedTimes times;
    times.before = measuredFromJson(from.at("default"));
    times.after = measuredFromJson(from.at("tuned"));
    from.at("pairs").get_to(times.pairs);
    from.at("processes").get_to(times.processes);
    from.at("verdict").get_to(times.verdict);
    from.at("comparison").get_to(times.sentence);
    from.at("undecided").get_to(times.isUndecided);
    from.at("warnings").get_to(times.warnings);
    if (const json &change = from.at("change"); change.is_array())
      times.change = bench::Interval{change.at(0).get<double>(),
                                     change.at(1).get<double>(),
                                     change.at(2).get<double>()};
    return times;
  } catch (const json::exception &) {
    return std::nullopt;
  }
}

std::optional<DecidedTimes> decidedTimesOf(const db::Trial &trial) {
  if (trial.status != db::TrialStatus::Ok)
    return std::nullopt;
  const json about = json::parse(trial.provenance.environment, nullptr, false);
  if (!about.is_object() || !about.contains("session") ||
      !about["session"].is_object() || !about["session"].contains("times"))
    return std::nullopt;
  return decidedTimesFromJson(about["session"]["times"]);
}

std::string measuredText(const Measured &measured) {
  if (measured.lowUs >= measured.highUs)
    return durationText(measured.us);
  return fmt::format("{} [{}, {}]", durationText(measured.us),
                     durationText(measured.lowUs),
                     durationText(measured.highUs));
}

std::string decidedText(const DecidedTimes &times) {
  std::string text = fmt::format("default  {}\ntuned    {}: {}\n",
                                 durationText(times.before.us),
                                 durationText(times.after.us), times.sentence);
  for (const std::string &warning : times.warnings)
    text += fmt::format("warning  {}\n", warning);
  return text;
}

} // namespace mgpu::tuner

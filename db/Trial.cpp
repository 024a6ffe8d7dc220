// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "db/Trial.h"

#include "db/TuningProblem.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace mgpu::db {

static constexpr std::string_view names[] = {
    "ok", "wrong", "crashed", "timeout", "over-limit", "invalid"};

std::string_view statusName(TrialStatus status) {
  return names[size_t(status)];
}

Result<TrialStatus> parseStatus(std::string_view name) {
  for (size_t k = 0; k < std::size(names); ++k)
    if (names[k] == name)
      return TrialStatus(k);
  return fail(
      ErrorKind::Invalid,
      fmt::format("'{}' is not a valid status of a trial", name.substr(0, 40)));
}

Result<void> check(const Trial &trial) {
  auto wrong = [&](std::string_view what) {
    return fail(ErrorKind::Invalid,
                fmt::format("the trial of '{}' {}",
                            trial.configuration.substr(0, 200), what));
  };
  MGPU_TRY(parsePairs(trial.configuration));
  for (double figure : {trial.medianUs, trial.meanUs, trial.spreadUs,
                        trial.lowUs, trial.highUs, trial.seconds})
    if (!std::isfinite(figure) || figure < 0)
      return wrong("has a figure that is negative or not finite");
  if (trial.samples > uint64_t(INT64_MAX))
    return wrong("has more samples than can be");
  if (trial.status != TrialStatus::Ok) {
    if (trial.sentence.empty())
      return wrong("failed and does not say why");
    return {};
  }
  if (trial.samples == 0 || trial.medianUs == 0)
    return wrong("is ok but was not measured");
  if (trial.lowUs > trial.medianUs || trial.highUs < trial.medianUs)
    return wrong("has an interval that does not hold its median");
  return {};
}

using Json = nlohmann::ordered_json;

std::string trialToJson(const Trial &trial) {
  Json out{{"configuration", trial.configuration},
           {"status", statusName(trial.status)},
           {"median_us", trial.medianUs},
           {"mean_us", trial.meanUs},
           {"spread_us", trial.spreadUs},
           {"low_us", trial.lowUs},
           {"high_us", trial.highUs},
           {"samples", trial.samples},
           {"seconds", trial.seconds},
           {"sentence", trial.sentence},
           {"time_ms", trial.provenance.timeMs},
           {"version", trial.provenance.version},
           {"host", trial.provenance.host},
           {"environment", trial.provenance.environment}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Trial> trialFromJson(std::string_view text, const std::string &name) {
  Trial trial;
  try {
    Json in = Json::parse(text);
    in.at("configuration").get_to(trial.configuration);
    MGPU_TRY_ASSIGN(trial.status,
                    parseStatus(in.at("status").get<std::string>()));
    in.at("median_us").get_to(trial.medianUs);
    in.at("mean_us").get_to(trial.meanUs);
    in.at("spread_us").get_to(trial.spreadUs);
    in.at("low_us").get_to(trial.lowUs);
    in.at("high_us").get_to(trial.highUs);
    in.at("samples").get_to(trial.samples);
    in.at("seconds").get_to(trial.seconds);
    in.at("sentence").get_to(trial.sentence);
    in.at("time_ms").get_to(trial.provenance.timeMs);
    in.at("version").get_to(trial.provenance.version);
    in.at("host").get_to(trial.provenance.host);
    in.at("environment").get_to(trial.provenance.environment);
  } catch (const Json::parse_error &) {
    return fail(ErrorKind::Invalid,
                fmt::format("{}: not valid JSON: the file is cut short or "
                            "damaged here",
                            name));
  } catch (const Json::exception &error) {
    // After the library's name for it: "key 'status' not found".
    std::string_view what = error.what();
    what.remove_prefix(std::min(what.find("] ") + 2, what.size()));
    return fail(ErrorKind::Invalid,
                fmt::format("{}: not a trial: {}", name, what));
  }
  return trial;
}

} // namespace mgpu::db

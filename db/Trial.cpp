// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "db/Trial.h"

#include "support/Sha256.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

namespace mgpu::db {

namespace {

/// Escapes what is not printable ASCII, the backslash and what is in `special`.
std::string escape(std::string_view text, std::string_view special) {
  std::string out;
  for (unsigned char c : text) {
    if (c < 0x20 || c >= 0x7f) {
      out += fmt::format("\\x{:02x}", c);
      continue;
    }
    if (c == '\\' || special.find(char(c)) != std::string_view::npos)
      out += '\\';
    out += char(c);
  }
  return out;
}

/// Takes text up to an unescaped character of `ends` or the end off `rest`;
/// none where an escape is malformed.
std::optional<std::string> unescape(std::string_view &rest,
                                    std::string_view ends) {
  std::string out;
  while (!rest.empty() && ends.find(rest.front()) == std::string_view::npos) {
    char c = rest.front();
    rest.remove_prefix(1);
    if (c != '\\') {
      out += c;
      continue;
    }
    if (rest.empty())
      return std::nullopt;
    if (rest.front() != 'x') {
      out += rest.front();
      rest.remove_prefix(1);
      continue;
    }
    uint8_t code = 0;
    if (rest.size() < 3 ||
        std::from_chars(rest.data() + 1, rest.data() + 3, code, 16).ptr !=
            rest.data() + 3)
      return std::nullopt;
    out += char(code);
    rest.remove_prefix(3);
  }
  return out;
}

using Field = std::pair<const char *, std::string TuningProblem::*>;
constexpr std::array<Field, 7> fields{{
    {"program", &TuningProblem::program},
    {"shape", &TuningProblem::shape},
    {"device", &TuningProblem::device},
    {"architecture", &TuningProblem::architecture},
    {"driver", &TuningProblem::driver},
    {"environment", &TuningProblem::environment},
    {"policy", &TuningProblem::policy},
}};

} // namespace

std::string pairsText(const Pairs &pairs) {
  std::string out;
  for (const auto &[name, value] : pairs)
    out += (out.empty() ? "" : ",") + escape(name, ",=") + "=" +
           escape(value, ",=");
  return out;
}

Result<Pairs> parsePairs(std::string_view text) {
  Pairs pairs;
  std::string_view rest = text;
  auto wrong = [&] {
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' is not of the form name=value,name=value "
                            "with ascending names",
                            text.substr(0, 200)));
  };
  while (!rest.empty()) {
    auto name = unescape(rest, ",=");
    if (!name || rest.empty() || rest.front() != '=')
      return wrong();
    rest.remove_prefix(1);
    auto value = unescape(rest, ",=");
    if (!value || !pairs.emplace(*name, *value).second)
      return wrong();
    if (!rest.empty() && (rest.front() != ',' || rest.size() == 1))
      return wrong();
    if (!rest.empty())
      rest.remove_prefix(1);
  }
  // One content must not have two texts.
  if (pairsText(pairs) != text)
    return wrong();
  return pairs;
}

std::string TuningProblem::text() const {
  std::string out;
  for (auto [name, member] : fields)
    out += fmt::format("{}={}\n", name, escape(this->*member, ""));
  return out;
}

Result<TuningProblem> TuningProblem::parse(std::string_view text) {
  TuningProblem problem;
  std::string_view rest = text;
  for (auto [name, member] : fields) {
    std::string head = fmt::format("{}=", name);
    auto value = std::optional<std::string>();
    if (rest.starts_with(head)) {
      rest.remove_prefix(head.size());
      value = unescape(rest, "\n");
    }
    if (!value || rest.empty())
      return fail(ErrorKind::Invalid,
                  fmt::format("the text of a problem lacks '{}=': it is not "
                              "what mgpu writes",
                              name));
    rest.remove_prefix(1);
    problem.*member = std::move(*value);
  }
  if (problem.text() != text)
    return fail(ErrorKind::Invalid,
                "the text of a problem is not in its canonical form");
  return problem;
}

std::string TuningProblem::key() const { return Sha256().add(text()).hex(); }

std::string TuningProblem::familyKey() const {
  return Sha256().addField(program).addField(architecture).hex();
}

std::string TuningProblem::settingKey() const {
  return Sha256().addField(driver).addField(environment).addField(policy).hex();
}

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

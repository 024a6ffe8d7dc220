// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/report/Report.h"

#include <fmt/format.h>

namespace mgpu::tuner {

/// RFC 4180; and what begins like a formula is not a formula to a spreadsheet.
static std::string field(std::string_view text) {
  std::string out = "\"";
  if (!text.empty() &&
      std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos)
    out += '\'';
  for (char c : text) {
    if (c == '"')
      out += '"';
    out += c;
  }
  return out + '"';
}

std::string toCsv(const Report &report) {
  std::string out = "time,subject,status,median_us,low_us,high_us,samples,"
                    "relative,seconds,spent_seconds,configuration,what\r\n";
  for (const ReportTrial &each : report.trials) {
    const db::Trial &trial = each.trial;
    const std::string &subject =
        each.kernel < 0 ? "program"
                        : report.kernels[size_t(each.kernel)].facts.name;
    const bool isOk = trial.status == db::TrialStatus::Ok;
    std::string figures =
        isOk
            ? fmt::format("{},{},{},{},{}", trial.medianUs, trial.lowUs,
                          trial.highUs, trial.samples,
                          each.relative ? fmt::format("{}", each.relative) : "")
            : ",,,,";
    out += fmt::format(
        "{},{},{},{},{},{},{},{}\r\n", timeText(trial.provenance.timeMs),
        field(subject), db::statusName(trial.status), figures, trial.seconds,
        each.spentSeconds, field(trial.configuration), field(trial.sentence));
  }
  return out;
}

} // namespace mgpu::tuner

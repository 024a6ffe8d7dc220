// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/report/Report.h"
#include "tuner/report/ReportText.h"

#include <fmt/format.h>

#include <algorithm>

namespace mgpu::tuner {

/// Text in a cell or paragraph: nothing in it is markup.
static std::string quote(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (static_cast<unsigned char>(c) < 0x20)
      c = ' ';
    if (std::string_view("\\`*_{}[]<>#|~&").find(c) != std::string_view::npos)
      out += '\\';
    out += c;
  }
  return out;
}

static std::string orDash(double value, std::string text) {
  return value > 0 ? std::move(text) : "-";
}

static void addKernels(std::string &out, const Report &report) {
  if (report.kernels.empty())
    return;
  out += "\n## Kernels\n\n| kernel | launches | default us | tuned us | bound "
         "| share of peak | tried | failed |\n|---|--:|--:|--:|---|--:|--:|--:|"
         "\n";
  for (const ReportKernel &kernel : report.kernels) {
    const KernelFacts &facts = kernel.facts;
    out += fmt::format(
        "| {} | {} | {} | {} | {} | {} | {} | {} |\n", quote(facts.name),
        facts.launches,
        orDash(facts.defaultUs, fmt::format("{:.3f}", facts.defaultUs)),
        orDash(facts.tunedUs, fmt::format("{:.3f}", facts.tunedUs)),
        orDash(kernel.boundUs,
               fmt::format("{:.3f} us, {}", kernel.boundUs,
                           kernel.isMemoryBound ? "memory" : "arithmetic")),
        orDash(kernel.shareOfPeak(),
               fmt::format("{:.1f} %", 100 * kernel.shareOfPeak())),
        kernel.tried, kernel.failed);
  }
  out += "\n" + quote(peakText(report)) + "\n";
}

static void addNodes(std::string &out, const Report &report) {
  out += "\n## Nodes\n\n" + quote(profileText(report)) + "\n";
  if (!report.profile)
    return;
  out += "\n| node | kind | device | predicted us | measured us | ratio |\n"
         "|---|---|---|--:|--:|--:|\n";
  for (const NodeProfile &node : longestNodes(*report.profile))
    out +=
        fmt::format("| {} | {} | {} | {:.3f} | {:.3f} | {} |\n",
                    quote(node.name), toString(node.kind), quote(node.devices),
                    node.predictedUs, node.measured.us,
                    orDash(node.ratio(), fmt::format("{:.2f}", node.ratio())));
}

static void addTimeline(std::string &out, const char *name,
                        const std::optional<ReportTimeline> &given,
                        const Report &report) {
  if (!given)
    return;
  out += fmt::format("\n### {}\n\n{}\n", name,
                     quote(timelineText(*given, report)));
  std::vector<Exposed> worst = given->exposed;
  std::sort(worst.begin(), worst.end(), [](auto &a, auto &b) {
    return a.endUs - a.startUs > b.endUs - b.startUs;
  });
  if (worst.size() > 10)
    worst.resize(10);
  if (!worst.empty())
    out += "\n| most exposed | device | from us | to us |\n|---|--:|--:|--:|\n";
  for (const Exposed &each : worst)
    out += fmt::format("| {} | {} | {:.3f} | {:.3f} |\n",
                       quote(given->timeline.steps[each.step].name),
                       each.device, each.startUs, each.endUs);
}

std::string toMarkdown(const Report &report) {
  std::string out = fmt::format("# {} of {}\n\n{}\n",
                                report.wasTuned() ? "Tuning" : "Profile",
                                quote(report.title), quote(headline(report)));
  for (const std::string &note : report.notes)
    out += "\n> " + quote(note) + "\n";
  if (report.wasTuned())
    out += fmt::format(
        "\n| | time |\n|---|--:|\n| default | {} |\n| tuned | {} |\n| change "
        "| {} |\n\n{}\n\n{}\n",
        quote(measuredText(report.before)), quote(measuredText(report.after)),
        quote(changeText(report)), quote(measuringText(report)),
        quote(trialsText(report)));
  out += "\n## Configuration\n\n";
  if (report.isDefault)
    out += "The default.\n";
  else
    for (auto &[name, value] : configurationLines(report))
      out += fmt::format("- {}: {}\n", quote(name), quote(value));
  addKernels(out, report);
  addNodes(out, report);
  if (!report.importance.empty())
    out += fmt::format("\n## Parameters\n\n{}\n\n| of | parameter | values | "
                       "trials | share |\n|---|---|--:|--:|--:|\n",
                       quote(importanceText));
  for (const ImportanceGroup &group : report.importance)
    for (const ParameterImportance &each : group.parameters)
      out += fmt::format("| {} | {} | {} | {} | {:.1f} % |\n",
                         quote(group.subject), quote(each.parameter),
                         each.values, group.trials, 100 * each.share);
  if (report.timelineBefore || report.timelineAfter)
    out += "\n## Timeline\n";
  addTimeline(out, report.wasTuned() ? "Default" : "Profiled",
              report.timelineBefore, report);
  addTimeline(out, "Tuned", report.timelineAfter, report);
  if (!report.best.empty())
    out += "\n## Best of the whole program\n\n| median us | low | high | "
           "samples | configuration |\n|--:|--:|--:|--:|---|\n";
  for (size_t k = 0; k < std::min<size_t>(report.best.size(), 10); ++k) {
    const db::Trial &trial = report.best[k];
    out += fmt::format("| {:.3f} | {:.3f} | {:.3f} | {} | {} |\n",
                       trial.medianUs, trial.lowUs, trial.highUs, trial.samples,
                       quote(trial.configuration));
  }
  out += "\n## Where and how\n\n";
  for (auto &[name, value] : provenanceLines(report))
    out += fmt::format("- {}: {}\n", quote(name), quote(value));
  return out;
}

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

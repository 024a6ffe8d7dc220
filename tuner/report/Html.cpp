// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One file: the text and tables as HTML, readable without scripts; the data as
// JSON, which page/report.js draws with ECharts.
#include "tuner/report/Assets.h"
#include "tuner/report/ReportText.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace mgpu::tuner {

namespace {

std::string escape(std::string_view text) {
  std::string out;
  for (char c : text)
    switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&quot;";
      break;
    case '\'':
      out += "&#39;";
      break;
    default:
      // Not allowed in HTML, whatever a name contains.
      out += static_cast<unsigned char>(c) < 0x20 && c != '\n' ? ' ' : c;
    }
  return out;
}

/// JSON within <script>: no '<' can end it or begin another.
std::string scriptSafe(std::string_view json) {
  std::string out;
  for (char c : json)
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  return out;
}

/// More points than that are a cloud, and slow to draw.
constexpr size_t mostTrials = 4000;

/// The report with no more trials than fit a picture: each that was the fastest
/// of the program so far, the fastest of all, and of the rest every so many.
Report thinned(Report report) {
  const size_t count = report.trials.size();
  if (count <= mostTrials)
    return report;
  const size_t every = (count + mostTrials - 1) / mostTrials;
  const double fastest = report.best.empty()      ? 0
                         : report.best.size() > 5 ? report.best[4].medianUs
                                                  : report.best.back().medianUs;
  double best = INFINITY;
  std::vector<ReportTrial> kept;
  for (size_t k = 0; k < count; ++k) {
    ReportTrial &each = report.trials[k];
    const bool counts =
        each.kernel < 0 && each.trial.status == db::TrialStatus::Ok;
    const double us = each.trial.medianUs;
    if (k % every == 0 || k + 1 == count ||
        (counts && (us < best || us <= fastest)))
      kept.push_back(std::move(each));
    if (counts)
      best = std::min(best, us);
  }
  report.trials = std::move(kept);
  report.notes.push_back(
      fmt::format("The search shows {} of {} trials; --format csv has all.",
                  report.trials.size(), count));
  return report;
}

class Page {
public:
  explicit Page(const Report &report) : report(report) {}

  std::string run() {
    head();
    summary();
    chartSection("result", "Before and after", measuringText(report), "",
                 !report.best.empty());
    timelines();
    chartSection(
        "progress", "Search",
        fmt::format("Every trial in the order they were made, over the time "
                    "spent on them in all sessions, beside the default of the "
                    "same thing: the whole program, or a kernel by itself. "
                    "{}",
                    trialsText(report)),
        "", !report.trials.empty());
    chartSection("importance", "What matters", importanceText, "",
                 !report.importance.empty());
    configuration();
    kernels();
    nodes();
    provenance();
    tail();
    return std::move(out);
  }

private:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args &&...args) {
    fmt::format_to(std::back_inserter(out), format,
                   std::forward<Args>(args)...);
  }

  const char *subject() const {
    return report.wasTuned() ? "tuning" : "profile";
  }

  void head() {
    // Nothing is loaded from anywhere, and the browser is told to refuse it.
    add("<!doctype html>\n<html lang=\"en\">\n<head>\n"
        "<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
        "'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
        "img-src data:\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, "
        "initial-scale=1\">\n<title>mgpu {}: {}</title>\n<style>\n{}"
        "</style>\n</head>\n<body>\n",
        subject(), escape(report.title), pageStyle());
    add("<header><div><p class=\"kind\">mgpu {} report</p><h1>{}</h1></div>"
        "<button id=\"theme\" type=\"button\" title=\"Switch between light and "
        "dark\">Light / dark</button></header>\n<main>\n",
        subject(), escape(report.title));
  }

  void tile(const char *name, const std::string &value,
            const std::string &below) {
    add("<div class=\"tile\"><p class=\"name\">{}</p><p class=\"value\">{}</p>"
        "<p class=\"below\">{}</p></div>\n",
        name, escape(value), escape(below));
  }

  static std::string intervalText(const Measured &measured) {
    return measured.lowUs < measured.highUs
               ? fmt::format("{} to {}", durationText(measured.lowUs),
                             durationText(measured.highUs))
               : std::string("no interval known");
  }

  void summary() {
    const char *tone = report.isDecided && !report.isDefault ? "good" : "same";
    add("<section class=\"summary\"><p class=\"headline {}\">{}</p>\n", tone,
        escape(headline(report)));
    add("<p class=\"where\">{} on {}, {} device{}{}</p>\n<div "
        "class=\"tiles\">\n",
        escape(report.subject.file.empty() ? report.title
                                           : report.subject.file),
        escape(report.problem.device), report.devices,
        report.devices == 1 ? "" : "s",
        report.decisions.empty()
            ? ""
            : ", " + timeText(report.decisions.back().timeMs));
    if (report.wasTuned())
      tuningTiles();
    else
      profileTiles();
    add("</div>\n");
    for (const std::string &note : report.notes)
      add("<p class=\"note\">{}</p>\n", escape(note));
    add("</section>\n");
  }

  void profileTiles() {
    const ProfileFacts &profile = *report.profile;
    auto half = [](const Quartiles &times) {
      return fmt::format("half within {} to {}", durationText(times.p25Us),
                         durationText(times.p75Us));
    };
    tile("replay", durationText(profile.replay.us), half(profile.replay));
    tile("serial, one thread", durationText(profile.serial.us),
         half(profile.serial));
    tile("predicted", durationText(profile.predictedUs), profile.model);
    tile("threads", std::to_string(profile.threads),
         profile.pinnedCpus == "none" ? "not pinned"
                                      : "on CPUs " + profile.pinnedCpus);
  }

  void tuningTiles() {
    tile("default", durationText(report.before.us),
         intervalText(report.before));
    tile("tuned",
         report.isDefault ? "the default" : durationText(report.after.us),
         report.isDefault ? "nothing was surely faster"
                          : intervalText(report.after));
    const bool changed = report.isDecided && !report.isDefault;
    std::string change = changeText(report);
    const size_t bracket = change.find(" [");
    tile("change", changed ? change.substr(0, bracket) : "-",
         changed ? "95 %: " + change.substr(bracket + 1) : "");
    tile("trials", std::to_string(report.tried),
         fmt::format("{} failed", report.failed));
    double seconds =
        report.decisions.empty()
            ? (report.trials.empty() ? 0 : report.trials.back().spentSeconds)
            : report.decisions.back().seconds;
    tile("time spent", fmt::format("{:.1f} s", seconds),
         fmt::format("{} session{}", report.decisions.size(),
                     report.decisions.size() == 1 ? "" : "s"));
  }

  void chartSection(const char *id, const char *title, const std::string &text,
                    const std::string &controls, bool present) {
    if (!present)
      return;
    add("<section><h2>{}</h2>{}\n<div class=\"chart\" id=\"chart-{}\"></div>\n",
        title, controls, id);
    caption(text);
  }

  /// The end of a section, with what its figures mean; nobody needs to read it
  /// twice.
  void caption(const std::string &text, const char *id = "") {
    add("<details class=\"caption\"{}><summary>What it shows</summary><p>{}"
        "</p></details></section>\n",
        id, escape(text));
  }

  void timelines() {
    if (!report.timelineBefore && !report.timelineAfter)
      return;
    const bool both = report.timelineBefore && report.timelineAfter;
    std::string controls;
    if (both)
      controls = "<p class=\"choice\" id=\"which\"><button type=\"button\" "
                 "data-which=\"after\" class=\"on\">tuned</button><button "
                 "type=\"button\" data-which=\"before\">default</button></p>";
    std::string text;
    if (report.timelineAfter)
      text = "Tuned. " + timelineText(*report.timelineAfter, report) + " ";
    if (report.timelineBefore)
      text += (report.wasTuned() ? "Default. " : "Profiled. ") +
              timelineText(*report.timelineBefore, report);
    text += " Outlines are the steps as they were planned; the dashed line is "
            "the bound: under the model no replay is shorter. A name above the "
            "picture shows or hides what it stands for. Zoom with the "
            "slider, or with the wheel while Ctrl is held; move by dragging.";
    chartSection("timeline", "Timeline", text, controls, true);
  }

  static std::string cell(double value, std::string text) {
    return value > 0 ? std::move(text) : std::string("-");
  }

  static std::string bar(double share) {
    return share > 0
               ? fmt::format("<span class=\"bar\"><i style=\"width:{:.1f}%\">"
                             "</i></span>{:.1f} %",
                             100 * std::min(share, 1.0), 100 * share)
               : std::string("-");
  }

  void kernels() {
    if (report.kernels.empty())
      return;
    double sum = 0;
    for (const ReportKernel &kernel : report.kernels)
      sum += kernel.us();
    add("<section><h2>Kernels</h2>\n<div class=\"scroll\"><table "
        "id=\"kernels\"><thead><tr><th>kernel</th><th>launches</th>"
        "<th>default us</th><th>tuned us</th><th>share of time</th>"
        "<th>bound us</th><th>bound by</th><th>share of peak</th>"
        "<th>tried</th><th>failed</th></tr></thead>\n<tbody>\n");
    std::vector<const ReportKernel *> order;
    for (const ReportKernel &kernel : report.kernels)
      order.push_back(&kernel);
    std::sort(order.begin(), order.end(), [](auto *a, auto *b) {
      return a->us() != b->us() ? a->us() > b->us()
                                : a->facts.name < b->facts.name;
    });
    for (const ReportKernel *kernel : order) {
      const KernelFacts &facts = kernel->facts;
      add("<tr><td title=\"{}\">{}</td><td>{}</td><td>{}</td><td>{}</td>"
          "<td class=\"share\">{}</td><td>{}</td><td>{}</td><td "
          "class=\"share\">{}</td><td>{}</td><td>{}</td></tr>\n",
          escape(facts.source), escape(facts.name), facts.launches,
          cell(facts.defaultUs, fmt::format("{:.3f}", facts.defaultUs)),
          cell(facts.tunedUs, fmt::format("{:.3f}", facts.tunedUs)),
          bar(sum > 0 ? kernel->us() / sum : 0),
          cell(kernel->boundUs, fmt::format("{:.3f}", kernel->boundUs)),
          kernel->boundUs > 0
              ? (kernel->isMemoryBound ? "memory" : "arithmetic")
              : "-",
          bar(kernel->shareOfPeak()), kernel->tried, kernel->failed);
    }
    add("</tbody></table></div>\n");
    caption(peakText(report));
  }

  void nodes() {
    add("<section><h2>Nodes</h2>\n");
    if (report.profile) {
      double sum = 0;
      for (const NodeProfile &node : report.profile->nodes)
        sum += node.measured.us;
      add("<div class=\"scroll\"><table id=\"nodes\"><thead><tr>"
          "<th>node</th><th>kind</th><th>device</th><th>predicted us</th>"
          "<th>measured us</th><th>ratio</th><th>share of time</th></tr>"
          "</thead>\n<tbody>\n");
      for (const NodeProfile &node : longestNodes(*report.profile))
        add("<tr><td title=\"{}\">{}</td><td>{}</td><td>{}</td><td>{:.3f}</td>"
            "<td>{:.3f}</td><td>{}</td><td class=\"share\">{}</td></tr>\n",
            escape(node.source), escape(node.name), toString(node.kind),
            escape(node.devices), node.predictedUs, node.measured.us,
            cell(node.ratio(), fmt::format("{:.2f}", node.ratio())),
            bar(sum > 0 ? node.measured.us / sum : 0));
      add("</tbody></table></div>\n");
    }
    if (report.profile)
      caption(profileText(report), " id=\"profile\"");
    else
      add("<p class=\"caption\" id=\"profile\">{}</p></section>\n",
          escape(profileText(report)));
  }

  void list(const char *title,
            const std::vector<std::pair<std::string, std::string>> &lines) {
    add("<section><h2>{}</h2>\n<dl>\n", title);
    for (auto &[name, value] : lines)
      add("<dt>{}</dt><dd>{}</dd>\n", escape(name), escape(value));
    add("</dl></section>\n");
  }

  void configuration() {
    auto lines = configurationLines(report);
    if (report.isDefault || lines.empty())
      lines = {{"plan", "the default, as without a database"}};
    list("Configuration", lines);
  }

  void provenance() { list("Where and how", provenanceLines(report)); }

  void tail() {
    add("</main>\n<footer>Plots by Apache ECharts 6.1.0 (Apache License 2.0), "
        "included. This file loads nothing.</footer>\n"
        "<script type=\"application/json\" id=\"data\">{}</script>\n"
        "<script>{}</script>\n<script>{}</script>\n</body>\n</html>\n",
        scriptSafe(toJsonText(report)), echartsScript(), pageScript());
  }

  const Report &report;
  std::string out;
};

} // namespace

std::string toHtml(const Report &report) {
  const Report shown = thinned(report);
  return Page(shown).run();
}

} // namespace mgpu::tuner

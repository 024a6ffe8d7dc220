// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/report/ReportText.h"

#include "support/Units.h"
#include "tuner/record/OutputAgreement.h"
#include "tuner/space/ProgramSpace.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

namespace mgpu::tuner {

const char *const verdictText =
    "FAST and SLOW: the interval of the change lies to one side of zero. SAME: "
    "it lies within 1 %. AMBG: it does not tell.";

const char *const importanceText =
    "How much of the variance of the logarithm of the time grouping the trials "
    "by one parameter accounts for (epsilon squared of a one-way analysis of "
    "variance, Kelley 1935: corrected for the number of groups). Parameters "
    "are taken one at a time, and a search tries good values more often than "
    "others: a share says where to look, not what causes what.";

std::string headline(const Report &report) {
  if (!report.wasTuned())
    return fmt::format(
        "Profiled, not tuned: a replay takes {} on {} thread{}, half of the "
        "samples {} to {}.",
        durationText(report.before.us), report.profile->threads,
        report.profile->threads == 1 ? "" : "s",
        durationText(report.profile->replay.p25Us),
        durationText(report.profile->replay.p75Us));
  if (!report.isDecided)
    return "No session came to its end yet.";
  std::string text = report.decisions.back().sentence + ".";
  text[0] = char(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string changeText(const Report &report) {
  if (!report.isDecided || report.isDefault || report.before.us <= 0)
    return "-";
  if (!report.metBy)
    return "-";
  return fmt::format("{:+.1f} % [{:+.1f}, {:+.1f}]", 100 * report.metBy->middle,
                     100 * report.metBy->low, 100 * report.metBy->high);
}

std::vector<std::pair<std::string, std::string>>
configurationLines(const Report &report) {
  std::vector<std::pair<std::string, std::string>> lines;
  std::string plan;
  const std::string prefix = kernelKeyPrefix;
  for (auto &[name, value] : report.configuration)
    if (!name.starts_with(prefix))
      plan += (plan.empty() ? "" : " ") + name + "=" + value;
  if (!plan.empty())
    lines.push_back({"plan", plan});
  for (auto &[name, value] : report.configuration)
    if (name.starts_with(prefix))
      lines.push_back({name.substr(prefix.size()), value});
  return lines;
}

std::string countText(double count) {
  return count < 1e6 ? fmt::format("{:.0f}", count)
                     : fmt::format("{:.2g}", count);
}

/// Quotes the text as a word of a shell.
static std::string shellWord(const std::string &text) {
  const bool isPlain =
      !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) ||
               std::string_view("_-+=.,:/@%").find(c) != std::string_view::npos;
      });
  if (isPlain)
    return text;
  std::string quoted = "'";
  for (char c : text)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string commandText(const Report &report, const char *command) {
  const SubjectName &subject = report.subject;
  std::string text =
      fmt::format("mgpu-tune {} {}", command,
                  subject.file.empty() ? "FILE" : shellWord(subject.file));
  if (!subject.entry.empty() && subject.entry != "main")
    text += " --entry " + shellWord(subject.entry);
  for (auto &[name, value] : subject.arguments)
    text += " --arg " + shellWord(name + "=" + value);
  return text + " --db " + shellWord(report.database);
}

std::string trialsText(const Report &report) {
  std::string text = fmt::format(
      "{}, {} failed{}", counted(report.tried, "trial"), report.failed,
      report.spaceSize > 0
          ? ", of " + countText(report.spaceSize) + " configurations"
          : "");
  // The kernels are many, the program is one.
  SpacePart kernels{"kernels alone", 0, 0}, program;
  for (const SpacePart &part : report.parts) {
    SpacePart &into = part.name == "program" ? program : kernels;
    into.points += part.points;
    into.tried += part.tried;
  }
  auto add = [&](const char *name, const SpacePart &part, const char *comma) {
    if (part.points > 0)
      text += fmt::format("{}{} {} of {} ({:.2g} %)", comma, name, part.tried,
                          countText(part.points), 100 * part.coverage());
  };
  add("variants of one kernel by itself:", kernels, "; ");
  add("plans with the best few of them:", program, "; ");
  return text + ".";
}

std::vector<std::pair<std::string, std::string>>
provenanceLines(const Report &report) {
  std::string arguments;
  for (auto &[name, value] : report.subject.arguments)
    arguments += (arguments.empty() ? "" : " ") + name + "=" + value;
  std::vector<std::pair<std::string, std::string>> lines;
  auto add = [&](const char *name, const std::string &value) {
    if (!value.empty())
      lines.push_back({name, value});
  };
  add("program", report.subject.file);
  add("entry", report.subject.entry);
  add("arguments", arguments);
  if (report.devices > 0)
    add("devices", std::to_string(report.devices));
  if (report.loopTrips > 1)
    add("loop", fmt::format("{} trips stay rolled", report.loopTrips));
  add("problem key", report.problem.key());
  add("shape", report.problem.shape);
  add("device", report.problem.device);
  add("architecture", report.problem.architecture);
  add("driver", report.problem.driver);
  add("measured", report.problem.policy);
  if (report.environment.empty())
    add("conditions", report.problem.environment);
  for (auto [name, value] : report.environment) {
    if (name == "load_average")
      add("load at the end", value + " (one minute)");
    else if (name != "pinned_cpus" && name != "cpu") {
      std::ranges::replace(name, '_', ' ');
      lines.push_back({name, value});
    }
  }
  for (auto &[name, value] : report.environment)
    if (name == "pinned_cpus")
      add("threads", value == "none" ? "not pinned"
                                     : "pinned to CPUs " + value +
                                           " while they were measured");
  if (!report.wasTuned())
    add("profiled",
        fmt::format("{} on {}, mgpu {}", timeText(report.profile->timeMs),
                    report.profile->host, report.profile->version));
  for (const Decision &each : report.decisions)
    lines.push_back(
        {"session of " + timeText(each.timeMs),
         fmt::format("mgpu {} on {}: {} candidates, {:.1f} s of tuning so far, "
                     "strategy {}{}{}; {}{}",
                     each.version, each.host, each.evaluations, each.seconds,
                     each.strategy.empty() ? "-" : each.strategy,
                     each.isComplete ? "" : ", interrupted",
                     each.isExhausted ? ", nothing left to try" : "",
                     each.sentence,
                     each.toleranceShare > 0
                         ? fmt::format("; its result is {}",
                                       toText(Agreement{each.toleranceShare}))
                         : "")});
  add("database", report.database);
  return lines;
}

std::string measuringText(const Report &report) {
  std::string text = fmt::format(
      "Intervals are of 95 %. Default and tuned ran in turn in several fresh "
      "processes of each ({}), on samples taken for this alone; the change is "
      "that of the pairs. What was only tried was looked at for a short time "
      "beside the default, and its bar is that ratio times the default's "
      "first time. Every candidate gave the bits of a serial plan of the "
      "default kernels, or results within the tolerance of docs/numerics.md, "
      "before it was measured. {}",
      report.problem.policy, verdictText);
  if (!report.best.empty() && report.isDecided &&
      report.best.front().medianUs < report.after.us)
    text += " A tried bar that is shorter than the one above it was not faster "
            "in the end: a short look at many flatters the best of them, and "
            "the default's first time is not that of the last meeting.";
  return text;
}

std::string peakText(const Report &report) {
  if (!report.peaks.isKnown())
    return "The peak of the machine was not measured.";
  const auto &memory = report.peaks.memory;
  return fmt::format(
      "Times are sums over the launches of a replay, medians of replays timed "
      "node by node at the end of the {0}. The bound is the larger of "
      "arithmetic over peak and traffic over peak, and the share of peak is "
      "the bound over the time. Peaks are of one thread, measured at the end "
      "of the {0}: {1:.1f} GFLOP/s (f32 fused multiply-adds) and, by the "
      "bytes a launch touches, {2:.0f} GB/s at {3} KiB to {4:.1f} GB/s at {5} "
      "MiB "
      "(a[i] = b[i] + s c[i]). Arithmetic is additions, subtractions, "
      "multiplications and divisions of floats; traffic is the boxes a kernel "
      "reads and writes, each byte once.",
      report.wasTuned() ? "session" : "profile", report.peaks.flopsPerUs / 1e3,
      memory.front().bytesPerUs / 1e3, memory.front().bytes >> 10,
      memory.back().bytesPerUs / 1e3, memory.back().bytes >> 20);
}

std::string profileText(const Report &report) {
  if (!report.profile)
    return fmt::format("Not measured. `{}` times each node beside what the "
                       "plan predicts; the next report shows it.",
                       commandText(report, "profile"));
  const ProfileFacts &profile = *report.profile;
  const char *which =
      report.isDecided && profile.configuration == report.configuration
          ? "the decided one"
      : report.isDecided
          ? "another than was decided: profile again to see that one"
          : "the default";
  auto error = [&](double us) {
    return profile.replay.us > 0 ? 100 * (us / profile.replay.us - 1) : 0;
  };
  std::string text = fmt::format(
      "By `mgpu-tune profile`, {} on {}, mgpu {}: medians of {} replays on {} "
      "thread{} ({}), corrected for reading the clock. A replay takes {} (half "
      "of "
      "the samples within {} to {}); {} were predicted ({}; {:+.1f} %) and {} "
      "follow from the nodes measured ({:+.1f} %). A serial plan on one thread "
      "takes {}.{} Ratio is measured over predicted. The configuration is {}.",
      timeText(profile.timeMs), profile.host, profile.version, profile.samples,
      profile.threads, profile.threads == 1 ? "" : "s",
      profile.pinnedCpus == "none" ? "not pinned"
                                   : "pinned to CPUs " + profile.pinnedCpus,
      durationText(profile.replay.us), durationText(profile.replay.p25Us),
      durationText(profile.replay.p75Us), durationText(profile.predictedUs),
      profile.model, error(profile.predictedUs),
      durationText(profile.recomputedUs), error(profile.recomputedUs),
      durationText(profile.serial.us),
      profile.plan.empty() ? "" : " By these times: " + profile.plan + ".",
      which);
  if (profile.nodes.size() > mostNodeRows)
    text += fmt::format(" The {} longest of {} nodes; --format json lists all.",
                        mostNodeRows, profile.nodes.size());
  return text;
}

std::vector<NodeProfile> longestNodes(const ProfileFacts &profile) {
  std::vector<NodeProfile> nodes = profile.nodes;
  std::sort(nodes.begin(), nodes.end(),
            [](const NodeProfile &a, const NodeProfile &b) {
              return std::pair(-a.measured.us, a.node) <
                     std::pair(-b.measured.us, b.node);
            });
  if (nodes.size() > mostNodeRows)
    nodes.resize(mostNodeRows);
  return nodes;
}

std::string timelineText(const ReportTimeline &timeline, const Report &report) {
  const char *what =
      report.loopTrips > 1 ? "the first trip of one replay" : "one replay";
  return fmt::format(
      "{}: {} of {} steps, {}. Exposed, that is a copy or collective runs on a "
      "device that runs no kernel: {} in sum over the devices.{}{}",
      timeline.timeline.isMeasured
          ? fmt::format("Measured: {} of median length", what)
          : fmt::format("Predicted under the model '{}': {}",
                        timeline.timeline.model, what),
      durationText(timeline.lengthUs), timeline.timeline.steps.size(),
      timeline.timeline.isMeasured
          ? "each timed, which costs a reading of the clock at either end"
          : "the time each is expected to take",
      durationText(timeline.exposedUs()),
      timeline.timeline.isMeasured && report.isDecided
          ? " What a replay takes without those readings is said above."
          : "",
      timeline.timeline.plan.empty()
          ? ""
          : fmt::format(" Its plan: {}.", timeline.timeline.plan));
}

} // namespace mgpu::tuner

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_REPORT_REPORT_H
#define MGPU_TUNER_REPORT_REPORT_H

// The tuning of one program, for people. All of it comes from the database:
// equal databases, equal reports.

#include "db/Trial.h"
#include "support/Units.h"
#include "tuner/record/MeasuredTimes.h"
#include "tuner/record/ProfileFacts.h"
#include "tuner/record/ProgramFacts.h"

#include <optional>
#include <string>
#include <vector>

namespace mgpu::tuner {

struct ParameterImportance {
  std::string parameter;
  size_t values = 0; ///< different ones among the trials
  /// Share of the variance of the logarithm of the time that grouping the
  /// trials by this parameter alone accounts for, corrected for the number of
  /// groups: epsilon squared of a one-way analysis of variance (Kelley 1935),
  /// (SSb - (k - 1) SSw / (n - k)) / SSt, no lower than 0. It says nothing of
  /// how parameters act together, and a search tries good values more often
  /// than others, so that two of them may vary together.
  double share = 0;

  bool operator==(const ParameterImportance &) const = default;
};

struct ImportanceGroup {
  std::string subject; ///< "program", or a kernel's name
  size_t trials = 0;
  std::vector<ParameterImportance> parameters; ///< the largest share first
};

struct ImportanceSample {
  db::Pairs pairs;
  double us = 0; ///< > 0
};

/// Fewer trials say nothing.
inline constexpr size_t fewestForImportance = 10;

/// Every parameter with at least two values; a pair that a sample does not have
/// is a value of its own. Nothing of fewer than fewestForImportance samples.
std::vector<ParameterImportance>
importanceOf(const std::vector<ImportanceSample> &samples);

/// A row of the database.
struct ReportTrial {
  int32_t kernel = -1; ///< by KernelId; -1: the whole program
  db::Trial trial;
  /// Microseconds over the default's of the same thing; 0: not known.
  double relative = 0;
  double spentSeconds = 0; ///< up to its end, over all trials before it
};

struct ReportKernel {
  KernelFacts facts;
  uint64_t tried = 0, failed = 0; ///< by itself
  double boundUs = 0;             ///< no time is lower; 0: no peak is known
  bool isMemoryBound = false;     ///< else by arithmetic
  std::string configuration;      ///< decided; empty: the default

  /// The time of what was decided, else of the default; 0: not known.
  double us() const { return facts.tunedUs ? facts.tunedUs : facts.defaultUs; }
  double shareOfPeak() const { return us() > 0 ? boundUs / us() : 0; }
};

/// A stretch in which a device runs a copy or collective and no kernel.
struct Exposed {
  size_t step = 0; ///< of the timeline
  int32_t device = 0;
  double startUs = 0, endUs = 0;

  bool operator==(const Exposed &) const = default;
};

struct ReportTimeline {
  Timeline timeline;
  double lengthUs = 0;
  std::vector<Exposed> exposed;

  /// Sum over devices.
  double exposedUs() const;
  /// The end of the last step as it was planned.
  double plannedUs() const;
};

/// A part of the space, and how much of it was tried when it was decided.
struct SpacePart {
  std::string name; ///< "kernel NAME", "program"
  double points = 0;
  uint64_t tried = 0;

  double coverage() const { return points > 0 ? double(tried) / points : 0; }
  bool operator==(const SpacePart &) const = default;
};

/// The end of a session.
struct Decision {
  int64_t timeMs = 0;
  std::string host, version, sentence, strategy;
  double seconds = 0; ///< over all sessions until then
  uint64_t evaluations = 0;
  bool isComplete = false, isExhausted = false;
  /// How far the winner's results are off, over what they may be; 0 where they
  /// are the reference's bits.
  double toleranceShare = 0;
};

struct Report {
  db::TuningProblem problem;
  std::string database;
  std::string title; ///< the file's name, else the front of the problem's key
  SubjectName subject;
  uint32_t devices = 0;
  uint64_t loopTrips = 1;
  std::vector<std::pair<std::string, std::string>> environment;

  bool isDecided = false, isDefault = true;
  std::string verdict; ///< FAST, SLOW, SAME, AMBG, or none was met
  Measured before, after;
  /// The change over the pairs of the last meeting; none where nothing met the
  /// default.
  std::optional<bench::Interval> metBy;
  std::vector<std::string> warnings; ///< about the machine, at the decision
  db::Pairs configuration;           ///< decided
  double spaceSize = 0;              ///< 0: not known
  std::vector<SpacePart> parts;      ///< what the space consists of
  std::vector<Decision> decisions;

  std::vector<ReportTrial> trials; ///< by time
  uint64_t tried = 0, failed = 0;
  /// Trials of the whole program, the fastest first, failures left out.
  std::vector<db::Trial> best;
  std::vector<ImportanceGroup> importance;
  std::vector<ReportKernel> kernels;
  bench::Peaks peaks;
  std::optional<ReportTimeline> timelineBefore, timelineAfter;
  std::optional<ProfileFacts> profile; ///< the last one
  std::vector<std::string> notes;      ///< what is not there, and why

  /// Whether anything of it was tried; else it was profiled alone, and `before`
  /// and `after` are what the profile measured.
  bool wasTuned() const { return isDecided || tried > 0; }
  /// The tuned configuration's time over the default's, less one.
  double change() const { return !isDefault && metBy ? metBy->middle : 0; }
};

/// When a device runs copies or collectives and no kernel.
std::vector<Exposed> exposedStretches(const Timeline &timeline);

/// "2026-11-21 22:41:54 UTC"
std::string timeText(int64_t timeMs);

// One renderer each. The HTML is one file that refers to no other and is read
// without a network; names in it are text, whatever they contain.
std::string toHtml(const Report &report);
std::string toMarkdown(const Report &report);
std::string toJsonText(const Report &report);
/// A line for each trial, after one of headings.
std::string toCsv(const Report &report);

} // namespace mgpu::tuner

#endif // MGPU_TUNER_REPORT_REPORT_H

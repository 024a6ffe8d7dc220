// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_REPORT_REPORTTEXT_H
#define MGPU_TUNER_REPORT_REPORTTEXT_H

// Sentences that the HTML and the Markdown share.

#include "tuner/report/Report.h"

namespace mgpu::tuner {

/// The outcome in one sentence.
std::string headline(const Report &report);
/// "-7.6 % [-11.5, -3.7]"; "-" where nothing was decided.
std::string changeText(const Report &report);
/// Each part of the decided configuration, and its value.
std::vector<std::pair<std::string, std::string>>
configurationLines(const Report &report);
/// Where and how, as name and value.
std::vector<std::pair<std::string, std::string>>
provenanceLines(const Report &report);
/// "1.2e+34", "1935"
std::string countText(double count);

/// "13 trials, 1 failed, of 1.2e+06 configurations: ..."; how much of each
/// part of the space was tried.
std::string trialsText(const Report &report);

/// "mgpu-tune tune x.mlir --arg a=2 --db t.db": the command on the report's
/// program, to be given to a shell.
std::string commandText(const Report &report, const char *command);

/// Explains FAST, SLOW, SAME and AMBG.
extern const char *const verdictText;
// Explains the figures.
std::string measuringText(const Report &report);
std::string peakText(const Report &report);
std::string timelineText(const ReportTimeline &timeline, const Report &report);
/// Explains the table of nodes, or how to come by one.
std::string profileText(const Report &report);
extern const char *const importanceText;

/// A table has no more; JSON lists all.
inline constexpr size_t mostNodeRows = 100;
/// The longest first.
std::vector<NodeProfile> longestNodes(const ProfileFacts &profile);

} // namespace mgpu::tuner

#endif // MGPU_TUNER_REPORT_REPORTTEXT_H

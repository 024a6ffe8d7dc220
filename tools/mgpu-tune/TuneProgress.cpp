// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/TuneProgress.h"

#include "support/Units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace mgpu::tools {

namespace {

std::string_view wordsOf(tuner::Stage stage) {
  switch (stage) {
  case tuner::Stage::Start:
    return "measuring the default";
  case tuner::Stage::Kernels:
    return "trying kernels";
  case tuner::Stage::Joint:
    return "trying whole programs";
  case tuner::Stage::Final:
    return "comparing with the default";
  }
  return "";
}

/// Stage, bar, time left and the best so far.
std::string terminalLine(const tuner::Progress &now) {
  constexpr size_t cells = 10;
  const bool timed = std::isfinite(now.secondsLeft);
  const double done = timed ? now.seconds : double(now.evaluated);
  const double left = timed ? now.secondsLeft : double(now.evaluationsLeft);
  const auto full = size_t(cells * done / std::max(done + left, 1e-9));
  std::string line =
      fmt::format("{} [{:.<{}}] ", wordsOf(now.stage),
                  std::string(std::min(full, cells), '#'), cells);
  line += timed ? fmt::format("{:.0f} s left", left)
                : fmt::format("{:.0f} left to try", left);
  if (now.bestUs > 0) {
    line += ", best " + durationText(now.bestUs);
    if (now.bestUs < now.defaultUs)
      line += fmt::format(", {:.1f} % less than the default",
                          100 * (1 - now.bestUs / now.defaultUs));
  }
  line += fmt::format("; {} tried, {} failed", now.evaluated, now.failed);
  return line;
}

} // namespace

void ProgressLine::operator()(const tuner::Progress &now) {
  const bool news = now.stage != stage || now.failed != failed;
  const double pause = line.isTerminal() ? 0.1 : 2;
  if (!news && now.seconds - printed < pause)
    return;
  stage = now.stage;
  failed = now.failed;
  printed = now.seconds;
  if (line.isTerminal())
    return line.show(terminalLine(now));
  std::string text = fmt::format(
      "{:<7} {} tried, {} failed, best {} ({:+.1f} %), {:.1f}/s",
      tuner::toString(now.stage), now.evaluated, now.failed,
      durationText(now.bestUs), 100 * (now.bestUs / now.defaultUs - 1),
      double(now.evaluated) / std::max(now.seconds, 1e-3));
  if (std::isfinite(now.secondsLeft))
    text += fmt::format(", {:.0f} s left", now.secondsLeft);
  else
    text += fmt::format(", {} left", now.evaluationsLeft);
  fmt::print(stderr, "{}; {}\n", text,
             now.last.size() > mostOfLast
                 ? now.last.substr(0, mostOfLast - 3) + "..."
                 : now.last);
  std::fflush(stderr);
}

} // namespace mgpu::tools

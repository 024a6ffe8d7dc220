// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The progress that `tune` shows while it searches.
#ifndef MGPU_TOOLS_MGPU_TUNE_TUNEPROGRESS_H
#define MGPU_TOOLS_MGPU_TUNE_TUNEPROGRESS_H

#include "pipeline/tune/Tune.h"
#include "support/TerminalLine.h"

namespace mgpu::tools {

/// One line that stays on a terminal; else a line now and then.
class ProgressLine {
public:
  void operator()(const tuner::Progress &now);

private:
  /// Bytes; a configuration of many kernels takes a screen.
  static constexpr size_t mostOfLast = 120;
  TerminalLine line;
  tuner::Stage stage = tuner::Stage::Final;
  uint64_t failed = 0;
  double printed = -1;
};

} // namespace mgpu::tools

#endif // MGPU_TOOLS_MGPU_TUNE_TUNEPROGRESS_H

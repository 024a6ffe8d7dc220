// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_SPACE_RECORDEDSPACE_H
#define MGPU_TUNER_SPACE_RECORDEDSPACE_H

// A tuning space whose every point was measured once: a strategy can be scored
// on it without the device.

#include "tuner/space/ConfigSpace.h"

namespace mgpu::tuner {

struct RecordedSpace {
  std::string name;
  ConfigSpace space;
  std::vector<std::optional<double>> timeMs; ///< by ConfigId; none: it failed
  std::vector<double> costMs; ///< what measuring it took, by ConfigId
};

/// Reads a table (.csv, also gzipped) with a header: parameter columns, then
/// time_ms, sd_ms, compile_ms, benchmark_ms, framework_ms, status. The status
/// "ok" is a measured point; any other a failure, whose times may be empty. A
/// parameter with a value that is not a number is a choice without order.
Result<RecordedSpace> readRecordedSpace(const std::string &path);

/// Parses a text in memory; `name` is what errors call it.
Result<RecordedSpace> parseRecordedSpace(std::string_view text,
                                         std::string name);

} // namespace mgpu::tuner

#endif // MGPU_TUNER_SPACE_RECORDEDSPACE_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_DB_TEMPFOLDER_H
#define MGPU_TESTS_UNIT_DB_TEMPFOLDER_H

#include "db/TuningStore.h"

#include <filesystem>
#include <string>
#include <unistd.h>

namespace mgpu::db {

/// A folder that goes with its test.
class TempFolder {
public:
  TempFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "mgpu-db-XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  TempFolder(const TempFolder &) = delete;
  TempFolder &operator=(const TempFolder &) = delete;
  ~TempFolder() {
    std::error_code none;
    std::filesystem::remove_all(path, none);
  }
  std::string operator/(const char *name) const { return path + "/" + name; }
  std::string path;
};

inline TuningProblem problemOf(const std::string &shape) {
  return {"matmul", shape,      "H100",        "sm_90",
          "580.1",  "1 device", "cold, median"};
}

inline Trial okTrial(const std::string &configuration, double medianUs,
                     uint64_t samples = 10) {
  Trial trial;
  trial.configuration = configuration;
  trial.medianUs = trial.meanUs = medianUs;
  trial.spreadUs = 0.25;
  trial.lowUs = medianUs * 0.5;
  trial.highUs = medianUs * 2;
  trial.samples = samples;
  trial.seconds = 0.5;
  trial.provenance = {1'700'000'000'000, "0.1.0", "node7", R"({"clock":1980})"};
  return trial;
}

inline Trial failedTrial(const std::string &configuration,
                         TrialStatus status = TrialStatus::Crashed) {
  Trial trial;
  trial.configuration = configuration;
  trial.status = status;
  trial.sentence = "the worker was killed by signal 11";
  trial.provenance = {1'700'000'000'000, "0.1.0", "node7", R"({"clock":1980})"};
  return trial;
}

} // namespace mgpu::db

#endif // MGPU_TESTS_UNIT_DB_TEMPFOLDER_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_OPTIONS_H
#define MGPU_TOOLS_MGPU_TUNE_OPTIONS_H

// The command line as plain data: a struct for each command. The parts that the
// pipeline takes are its own option structs.

#include "pipeline/build/MakeBundle.h"
#include "pipeline/run/JoinRanks.h"
#include "pipeline/run/OpenRunner.h"
#include "pipeline/run/PlanProgram.h"
#include "pipeline/tune/Compare.h"

#include <map>
#include <string>
#include <vector>

namespace mgpu::tools {

using namespace pipeline;

/// Options of every command that reads a program.
struct ProgramOptions {
  LoadOptions load;
  bool json = false;
};

struct CheckOptions : ProgramOptions {
  bool probe = false; ///< run the kernels (pipeline/run/Probe.h)
  std::string planFile, certificateFile;
};

/// `run` and `replay`.
struct RunOptions : ProgramOptions, RunnerOptions {
  std::map<std::string, std::string> outputs; ///< --out K=FILE
  uint64_t repeat = 1;
  std::string traceFile, metricsFile;
  std::string onDifference; ///< "go-on"
  bool random = false;      ///< arrays without a value get random numbers
};

struct PlanCommandOptions : ProgramOptions, RankOptions, PlanRequest {
  std::string output; ///< -o; "-" is the standard output
  std::string dotFile, traceFile, svgFile, certificateFile, dagFile;
  bool explain = false;
  bool steps = false;  ///< list them after the summary
  bool pareto = false; ///< of machines that are not here
};

struct BundleCommandOptions : ProgramOptions {
  PrepareOptions prepare;
  BundleOptions bundle;
  std::string output; ///< -o
};

struct TuneOptions : ProgramOptions, MeasureOptions, RankOptions {
  std::string budget = "60s";
  std::string strategy = "surrogate";
  uint64_t seed = 0;
};

/// Without `b`, load.file and `a` are plans.
struct CompareOptions : ProgramOptions, WaysToCompare {
  std::string budget = "10s";
};

struct ProfileOptions : ProgramOptions, MeasureOptions, RankOptions {
  bool useTuned = true;
  uint64_t repeat = 200;
  std::string traceFile;
};

struct CalibrateOptions : ProgramOptions, GpuOptions {
  std::string output; ///< -o
};

struct ReportOptions : ProgramOptions {
  std::string output;  ///< -o; empty: see ReportCommand.cpp
  std::string format;  ///< html, md, json, csv
  std::string problem; ///< a key, or the front of one
};

struct KernelsOptions : ProgramOptions {
  std::string arch = "sm_90";
  std::string emitFolder; ///< --emit
};

/// `devices` and `doctor`.
struct HardwareOptions {
  bool json = false;
};

struct SecretOptions {
  std::string file;
  bool json = false;
};

/// Each returns the exit code after it has printed its result to stdout, or
/// the error to be printed.
Result<int> runCheck(const CheckOptions &options);
Result<int> runPlan(const PlanCommandOptions &options);
Result<int> runRun(const RunOptions &options);
Result<int> runKernels(const KernelsOptions &options);
Result<int> runTune(const TuneOptions &options);
Result<int> runCompare(const CompareOptions &options);
Result<int> runPlanDiff(const CompareOptions &options);
Result<int> runProfile(const ProfileOptions &options);
Result<int> runCalibrate(const CalibrateOptions &options);
Result<int> runReport(const ReportOptions &options);
Result<int> runBundle(const BundleCommandOptions &options);
Result<int> runDevices(const HardwareOptions &options);
Result<int> runDoctor(const HardwareOptions &options);

} // namespace mgpu::tools

#endif // MGPU_TOOLS_MGPU_TUNE_OPTIONS_H

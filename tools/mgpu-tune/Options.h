// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_OPTIONS_H
#define MGPU_TOOLS_MGPU_TUNE_OPTIONS_H

// What the command line says, as plain data, and the commands it selects.

#include "support/Result.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace mgpu::tune {

struct Options {
  std::string file;
  std::string entry = "main";
  std::string target; ///< "host:4"; empty: the default
  std::map<std::string, std::string> arguments; ///< --arg K=V
  std::map<std::string, std::string> roles;     ///< --role K=R
  std::map<std::string, std::string> outputs;   ///< --out K=FILE
  uint64_t nodeLimit = 4'000'000;
  uint64_t rollFrom = 8;
  bool fuse = true;

  std::string scheduler = "list";
  uint64_t seed = 0; ///< of scheduler "shuffled"
  uint32_t streams = 4;
  std::string memory;              ///< plan: bytes of each device, as "100GB"
  std::string transforms = "auto"; ///< plan, run, bundle
  std::string budget = "1s";       ///< plan: of the search for a sim target
  std::string collectivesFile;     ///< plan: measured times, for a sim target
  std::string planFile;            ///< replay: read; plan: written with -o
  bool writesPlan = false;         ///< plan: planFile is one of -o
  std::string dotFile, traceFile, svgFile;
  std::vector<std::string> whatIf; ///< plan: changes of the machine
  bool pareto = false;             ///< plan: time over memory
  double noisePercent = 0;         ///< plan: spread of durations
  bool explain = false;

  std::string cpu; ///< run, replay: level of the host's kernels; "": the best
  /// --scheduler, --seed or --streams was given, or --transforms named some
  bool choosesPlan = false;
  bool needsPlan = false; ///< replay: with no plan there is nothing to do

  std::string bundleFile;                ///< bundle: -o
  std::vector<std::string> bundleLevels; ///< bundle: --cpu
  std::vector<std::string> bundleArchs;  ///< bundle: --arch
  uint32_t alternatives = 0; ///< bundle: more ways of each kernel of the host

  /// run, replay, plan, kernels, bundle: how matrix products are computed,
  /// "mma", "wgmma", "cublaslt" or "none"; empty: those of f16 and bf16 by a
  /// form that has passed on the card (ProductForms.h), else by cuBLASLt, where
  /// it is
  std::string tensorCores;
  /// run, replay, kernels, bundle: on cards kernels may begin before those that
  /// they follow have ended, and wait for them
  bool pdl = false;
  /// run, replay, kernels, bundle: of each program that NVRTC compiles; 0: none
  uint64_t compileSeconds = 600;
  std::string arch = "sm_90"; ///< kernels
  std::string emitFolder;     ///< kernels: --emit

  std::string database; ///< --db; empty: MGPU_DB, or the user's cache directory
  std::string site;     ///< --db-site; empty: MGPU_DB_SITE, or none
  bool useTuned = true; ///< run, replay, plan: look into the database
  std::string tuneBudget = "60s";
  std::string strategy = "surrogate";
  bool coldCaches = false;
  bool pinThreads = true;   ///< tune, compare, profile: while measuring
  std::string sideA, sideB; ///< compare; no B: plans, file and A
  std::string compareBudget = "10s"; ///< compare: seconds or pairs
  uint64_t profileRepeat = 200;
  std::string calibrationFile; ///< calibrate: -o
  std::string reportFile;      ///< report: -o; empty: see ReportCommand.cpp
  std::string reportFormat;    ///< report: html, md, json, csv
  std::string reportProblem;   ///< report: a key, or the front of one

  /// What the command line has, defaults aside: "--seed", ...
  std::set<std::string> given;
  uint64_t repeat = 1;
  /// run, replay, calibrate on several cards: "overlap,max-ctas=8"
  std::string nccl;
  uint64_t deadlineSeconds = 120; ///< of each replay on a card; 0: none
  bool json = false;
};

/// Each returns the exit code after it has printed its result to stdout, or
/// the error to be printed.
Result<int> runCheck(const Options &options);
Result<int> runPlan(const Options &options);
Result<int> runRun(const Options &options);
Result<int> runKernels(const Options &options);
Result<int> runTune(const Options &options);
Result<int> runCompare(const Options &options);
Result<int> runPlanDiff(const Options &options);
Result<int> runProfile(const Options &options);
Result<int> runCalibrate(const Options &options);
Result<int> runReport(const Options &options);
Result<int> runBundle(const Options &options);
Result<int> runDevices(const Options &options);
Result<int> runDoctor(const Options &options);

} // namespace mgpu::tune

#endif // MGPU_TOOLS_MGPU_TUNE_OPTIONS_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// bench-schedule: how good the schedulers' plans are, beside what is known.
// Two forms, one file each: plain scheduling instances of PSPLIB
// (PsplibSuite.cpp) and one DAG (DagSuite.cpp).

#include "bench/suites/ScheduleSuite.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>

using namespace mgpu;

static void addPsplib(CLI::App &app, bench::PsplibOptions &psplib) {
  app.add_option("--psplib", psplib.directory,
                 "Directory of instances in Patterson's format, SET_P_I.rcp");
  app.add_option("--best", psplib.bestFile,
                 "PSPLIB solution list: optimal or best known makespans");
  app.add_option("--every", psplib.every,
                 "Only every N-th instance of the list, counted from the first")
      ->check(CLI::Range(1u, 1000000u));
  app.add_option("--threads", psplib.threads,
                 "Instances solved at a time; each search has one thread")
      ->check(CLI::Range(1u, 256u));
}

static void addDag(CLI::App &app, bench::DagOptions &dag) {
  app.add_option("--dag", dag.file, "An mgpu-dag/2 file to plan");
  app.add_option("--target", dag.target, "sim:NAME or sim:FILE, a topology");
  app.add_option("--model", dag.model, "Cost model of --dag: frozen");
  app.add_option(
      "--memory", dag.memory,
      "Limit of memory per device, as 100GB, 80GiB or none; default: "
      "the target's");
  app.add_option("--scale-comm", dag.scaleComm,
                 "Multiplies the collectives' durations");
  app.add_option("--plan-out", dag.planOut,
                 "Write the plan: nodes[] with id, start_us, end_us, stream, "
                 "offset");
  app.add_option("--transforms", dag.transforms,
                 "Of --dag: none (frozen model F), auto or a list, as of "
                 "mgpu-tune plan; each is kept if the plan gets shorter")
      ->default_str("none");
  app.add_option("--dag-out", dag.dagOut,
                 "Write the DAG that the plan is of, as transforms left it");
}

int main(int argc, char **argv) {
  CLI::App app("Plans instances with known bounds and prints how far from them "
               "the plans are.\n"
               "Results on stdout, words on stderr. Exit codes as mgpu-tune's.",
               "bench-schedule");
  bench::PsplibOptions psplib;
  bench::DagOptions dag;
  bench::CommonOptions common;
  addPsplib(app, psplib);
  addDag(app, dag);
  app.add_option("--seconds", common.seconds,
                 "Search time per instance or DAG; 0 is the list pass and one "
                 "improvement pass alone")
      ->check(CLI::Range(0.0, 1e6))
      ->required();
  const std::map<std::string, planner::exact::ClockKind> clocks{
      {"wall", planner::exact::ClockKind::Wall},
      {"cpu", planner::exact::ClockKind::ThreadCpu}};
  app.add_option("--clock", common.clock,
                 "What --seconds counts: wall (default), or cpu, the time the "
                 "search's thread runs, for machines that are shared")
      ->transform(CLI::CheckedTransformer(clocks))
      ->default_str("wall");
  app.add_option("--seed", common.seed, "Seed of the search");
  app.add_flag("--json", common.json, "Print JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : int(ErrorKind::Usage);
  }

  bool plain =
      !psplib.directory.empty() && !psplib.bestFile.empty() && dag.file.empty();
  bool graph =
      !dag.file.empty() && !dag.target.empty() && psplib.directory.empty();
  Result<int> code =
      fail(ErrorKind::Usage, "give --psplib DIR and --best FILE, or --dag FILE "
                             "and --target sim:NAME");
  if (plain)
    code = bench::runPsplib(psplib, common);
  else if (graph)
    code = bench::runDag(dag, common);
  if (code)
    return *code;
  std::fprintf(stderr, "bench-schedule: %s\n", code.error().message.c_str());
  return int(code.error().kind);
}

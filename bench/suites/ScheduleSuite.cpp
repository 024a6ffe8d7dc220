// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// bench-schedule: how good the plan of a DAG is, beside what is known
// (DagSuite.cpp).

#include "bench/suites/ScheduleSuite.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>

using namespace mgpu;

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
  CLI::App app("Plans a DAG and prints how far from its bound the plan is.\n"
               "Results on stdout, words on stderr. Exit codes as mgpu-tune's.",
               "bench-schedule");
  bench::DagOptions dag;
  bench::CommonOptions common;
  addDag(app, dag);
  app.add_option("--seconds", common.seconds,
                 "Search time; 0 is the list pass and one "
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

  Result<int> code =
      dag.file.empty() || dag.target.empty()
          ? fail(ErrorKind::Usage, "give --dag FILE and --target sim:NAME")
          : bench::runDag(dag, common);
  if (code)
    return *code;
  std::fprintf(stderr, "bench-schedule: %s\n", code.error().message.c_str());
  return int(code.error().kind);
}

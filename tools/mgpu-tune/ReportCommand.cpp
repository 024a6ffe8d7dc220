// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune report`: what the database knows of the tuning of one program.
#include "db/FileSystem.h"
#include "pipeline/Load.h"
#include "support/FileIO.h"
#include "tools/mgpu-tune/DbCommand.h"
#include "tools/mgpu-tune/FileUses.h"
#include "tuner/report/ReadReport.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace mgpu::pipeline {

using tuner::TunedProgram;

namespace {

/// "html", "md", "json" or "csv".
Result<std::string> formatOf(const ReportOptions &options) {
  const std::string &asked = options.format;
  if (options.json && !asked.empty() && asked != "json")
    return fail(ErrorKind::Usage,
                fmt::format("--json and --format {} contradict each other: "
                            "give one of them",
                            asked));
  if (options.json)
    return std::string("json");
  if (!asked.empty())
    return asked;
  const std::string &path = options.output;
  for (const char *format : {"md", "json", "csv"})
    if (path.ends_with(std::string(".") + format))
      return std::string(format);
  const std::string ending = std::filesystem::path(path).extension();
  if (!ending.empty() && ending != ".html" && ending != ".htm")
    return fail(ErrorKind::Usage,
                fmt::format("-o {}: reports are .html, .md, .json or .csv: "
                            "give --format for another name",
                            path));
  return std::string("html");
}

/// Those of the program in FILE: its structure and its sizes are the same.
std::vector<TunedProgram> ofProgram(std::vector<TunedProgram> programs,
                                    const LoadedProgram &program) {
  const bench::Environment environment = bench::readEnvironment();
  const db::TuningProblem wanted = tuner::programProblem(
      {program.dag, {}, environment, MGPU_VERSION, 1, false});
  std::erase_if(programs, [&](const TunedProgram &each) {
    return each.problem.program != wanted.program ||
           each.problem.shape != wanted.shape;
  });
  return programs;
}

/// What the program says of itself, for a session that never came to its end;
/// its timeline is predicted.
Result<tuner::ProgramFacts> predictedFacts(const LoadedProgram &program) {
  MGPU_TRY_ASSIGN(TuneContext context, makeTuneContext(program));
  tuner::ProgramFacts facts = factsOf(program, context, /*coldCaches=*/false);
  MGPU_TRY_ASSIGN(planner::Plan plan,
                  tuner::makePlan(program.dag, tuner::defaultConfig(
                                                   program.dag, context.spaces,
                                                   context.limits)));
  facts.before = tuner::describeReplay(program.dag, plan, {});
  return facts;
}

std::string listOf(const std::vector<TunedProgram> &programs) {
  std::string text;
  for (const TunedProgram &each : programs)
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ",
                        each.problem.key().substr(0, 12),
                        each.name.empty() ? "" : " (" + each.name + ")");
  return text;
}

/// The one to report on. Invalid where there is none.
Result<TunedProgram> choose(std::vector<TunedProgram> programs,
                            const LoadedProgram *program,
                            const ReportOptions &options,
                            const std::string &path) {
  if (programs.empty())
    return fail(ErrorKind::Invalid,
                fmt::format("nothing was tuned or profiled in '{}': 'mgpu-tune "
                            "tune FILE --db {}' comes first",
                            path, path));
  const std::string all = listOf(programs);
  if (program) {
    programs = ofProgram(std::move(programs), *program);
    if (programs.empty())
      return fail(
          ErrorKind::Invalid,
          fmt::format("'{}' has nothing of '{}' with these arguments: "
                      "tune or profile it, or name one of {} by --problem",
                      path, options.load.file, all));
  }
  const std::string &key = options.problem;
  if (!key.empty()) {
    std::erase_if(programs, [&](const TunedProgram &each) {
      return !each.problem.key().starts_with(key);
    });
    if (programs.size() != 1)
      return fail(ErrorKind::Usage,
                  fmt::format("--problem {} is {} of the programs tuned in "
                              "'{}', which are {}",
                              key, programs.empty() ? "none" : "several", path,
                              all));
  }
  if (programs.size() > 1)
    fmt::print(stderr,
               "mgpu-tune: the latest of {} in '{}' is reported; --problem "
               "takes another: {}\n",
               programs.size(), path, listOf(programs));
  return std::move(programs.front());
}

} // namespace

Result<int> runReport(const ReportOptions &options) {
  MGPU_TRY_ASSIGN(const std::string format, formatOf(options));
  const bool isPage = format == "html";
  const std::string output =
      options.output.empty() && isPage ? "report.html" : options.output;
  MGPU_TRY(filesRead(options.load).write("-o", output));
  MGPU_TRY_ASSIGN(db::TuningStore store,
                  openStore(options.load.database, db::Access::ReadOnly));
  std::optional<LoadedProgram> program;
  if (!options.load.file.empty()) {
    MGPU_TRY_ASSIGN(program, loadProgram(options.load));
  }
  MGPU_TRY_ASSIGN(auto programs, tuner::tunedPrograms(store));
  MGPU_TRY_ASSIGN(TunedProgram chosen,
                  choose(std::move(programs), program ? &*program : nullptr,
                         options, store.path()));
  MGPU_TRY_ASSIGN(tuner::Report report,
                  tuner::readReport(store, chosen.problem));
  if (program && !report.isDecided && !report.timelineBefore) {
    MGPU_TRY_ASSIGN(tuner::ProgramFacts facts, predictedFacts(*program));
    MGPU_TRY_ASSIGN(report, tuner::readReport(store, chosen.problem, facts));
  }
  const std::string text = isPage            ? tuner::toHtml(report)
                           : format == "md"  ? tuner::toMarkdown(report)
                           : format == "csv" ? tuner::toCsv(report)
                                             : tuner::toJsonText(report);
  if (output.empty()) {
    fmt::print("{}", text);
    return 0;
  }
  MGPU_TRY(writeFileAtomic(output, text));
  fmt::print("{}\n", output);
  return 0;
}

} // namespace mgpu::pipeline

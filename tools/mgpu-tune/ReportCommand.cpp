// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune report`: what the database knows of the tuning of one program.
#include "db/FileSystem.h"
#include "pipeline/program/Load.h"
#include "pipeline/tune/TunedSubject.h"
#include "support/FileIO.h"
#include "tools/mgpu-tune/DbCommand.h"
#include "tools/mgpu-tune/FileUses.h"

#include <fmt/format.h>

#include <filesystem>

namespace mgpu::tools {

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
                  chooseTuned(std::move(programs),
                              program ? &*program : nullptr, options.problem,
                              store.path()));
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

} // namespace mgpu::tools

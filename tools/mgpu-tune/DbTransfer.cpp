// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune db export|import|prune|verify`.
#include "tools/mgpu-tune/DbCommand.h"
#include "tools/mgpu-tune/JsonOutput.h"

#include "db/BundleStore.h"
#include "db/FileSystem.h"
#include "db/Maintenance.h"
#include "support/Clock.h"
#include "support/FileIO.h"
#include "support/FileNames.h"
#include "support/Units.h"
#include "tools/mgpu-tune/FileUses.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <cstdio>

namespace mgpu::tools {

using nlohmann::json;

static tl::unexpected<Error> damaged(const std::string &what, uint64_t rows) {
  return fail(ErrorKind::Invalid,
              fmt::format("{} of {} left out: 'mgpu-tune db verify' says "
                          "more",
                          counted(rows, "damaged row"), what));
}

Result<int> runDbExport(const DbOptions &options) {
  if (options.json && options.output.empty())
    return fail(ErrorKind::Usage, "the export is JSON lines already; --json "
                                  "counts them where -o takes them");
  LoadOptions load;
  load.database = options.database;
  FileUses uses = filesRead(load);
  MGPU_TRY(uses.write("-o", options.output));
  MGPU_TRY_ASSIGN(db::TuningStore store,
                  openStore(options.database, db::Access::ReadOnly));
  std::string text;
  auto sink = [&](std::string_view line) -> Result<void> {
    if (options.output.empty())
      fmt::print("{}", line);
    else
      text += line;
    return {};
  };
  MGPU_TRY_ASSIGN(db::Transferred done,
                  db::exportText(store, options.keys, sink));
  if (!options.output.empty())
    MGPU_TRY(writeFileAtomic(options.output, text));
  if (options.json)
    tools::printJson(json{{"problems", done.problems},
                          {"trials", done.trials},
                          {"damaged", done.damaged}});
  if (done.damaged > 0)
    return damaged(store.path(), done.damaged);
  return 0;
}

static void printTransferred(const DbOptions &options,
                             const db::Transferred &done) {
  if (options.json)
    tools::printJson(json{{"problems", done.problems},
                          {"trials", done.trials},
                          {"known", done.known},
                          {"damaged", done.damaged}});
  else
    fmt::print("{}, {}, {} known before{}\n", counted(done.problems, "problem"),
               counted(done.trials, "new trial"), done.known,
               done.damaged > 0
                   ? fmt::format(", {} left behind",
                                 counted(done.damaged, "damaged row"))
                   : "");
}

static void add(db::Transferred &sum, const db::Transferred &each) {
  sum.problems += each.problems;
  sum.trials += each.trials;
  sum.known += each.known;
  sum.damaged += each.damaged;
}

/// All that is read before anything is made: problems of texts, or a database.
struct Incoming {
  std::string database; ///< empty: a text
  std::vector<db::ProblemTrials> problems;
};

static Result<Incoming> readIncoming(const std::string &file) {
  constexpr uint64_t mostText = uint64_t(4) << 30;
  if (file != "-" && db::isDatabaseFile(file))
    return Incoming{file, {}};
  MGPU_TRY_ASSIGN(std::string text,
                  readText(file == "-" ? "/dev/stdin" : file, mostText));
  MGPU_TRY_ASSIGN(auto problems, db::parseText(text, file));
  return Incoming{"", std::move(problems)};
}

Result<int> runDbImport(const DbOptions &options) {
  std::vector<Incoming> incoming;
  for (const std::string &file : options.files) {
    MGPU_TRY_ASSIGN(Incoming each, readIncoming(file));
    incoming.push_back(std::move(each));
  }
  MGPU_TRY_ASSIGN(db::TuningStore store,
                  openStore(options.database, db::Access::Create));
  db::Transferred sum;
  for (const Incoming &each : incoming) {
    MGPU_TRY_ASSIGN(db::Transferred done,
                    each.database.empty() ? db::recordAll(store, each.problems)
                                          : db::merge(store, each.database));
    add(sum, done);
  }
  printTransferred(options, sum);
  if (sum.damaged > 0)
    return damaged("what was imported", sum.damaged);
  return 0;
}

/// "90d" or "90": milliseconds since 1970 of that many days ago.
static Result<int64_t> daysAgo(const std::string &text) {
  double days = 0;
  const char *last = text.data() + text.size();
  auto [end, error] = std::from_chars(text.data(), last, days);
  bool whole = end == last || (end + 1 == last && *end == 'd');
  if (error != std::errc() || !whole || !(days >= 0 && days < 1e6))
    return fail(
        ErrorKind::Usage,
        fmt::format("--older '{}' is not a number of days, as 90d", text));
  return unixMilliseconds() - int64_t(days * 86'400'000);
}

Result<int> runDbPrune(const DbOptions &options) {
  if (options.older.empty() && options.blobs.empty() && options.keys.empty())
    return fail(ErrorKind::Usage, "say what is to go: --older DAYS, --problem "
                                  "KEY or --blobs SIZE");
  db::PruneOptions what;
  if (!options.older.empty()) {
    MGPU_TRY_ASSIGN(what.beforeMs, daysAgo(options.older));
  }
  if (!options.blobs.empty()) {
    MGPU_TRY_ASSIGN(what.blobBytes, parseByteSize(options.blobs, "--blobs"));
  }
  MGPU_TRY_ASSIGN(db::TuningStore store,
                  openStore(options.database, db::Access::ReadWrite));
  for (const std::string &key : options.keys) {
    MGPU_TRY_ASSIGN(db::TuningProblem problem, db::findByKey(store, key));
    what.problems.push_back(std::move(problem));
  }
  MGPU_TRY_ASSIGN(db::Pruned done, db::prune(store, what));
  if (options.json)
    tools::printJson(json{{"problems", done.problems},
                          {"trials", done.trials},
                          {"blobs", done.blobs},
                          {"bytes_before", done.bytesBefore},
                          {"bytes_after", done.bytesAfter}});
  else
    fmt::print("removed {}, {} and {}; {} of {} bytes are left\n",
               counted(done.problems, "problem"), counted(done.trials, "trial"),
               counted(done.blobs, "text or cubin", "texts or cubins"),
               done.bytesAfter, done.bytesBefore);
  return 0;
}

static json toJson(const std::string &path, const db::VerifyReport &report) {
  return {{"database", path},
          {"sound", report.isSound()},
          {"problems", report.problems},
          {"configurations", report.configurations},
          {"trials", report.trials},
          {"blobs", report.blobs},
          {"damaged", report.damaged},
          {"wrong", report.wrong},
          {"faults", report.faults}};
}

static void print(const std::string &file, const db::VerifyReport &report) {
  fmt::print("{}: {}: {}, {}, {}, {}\n", file,
             report.isSound() ? "sound" : "damaged",
             counted(report.problems, "problem"),
             counted(report.configurations, "configuration"),
             counted(report.trials, "trial"),
             counted(report.blobs, "text or cubin", "texts or cubins"));
  if (report.isSound())
    return;
  fmt::print("  {}, {}\n", counted(report.damaged, "damaged row"),
             counted(report.wrong, "wrong winner or failure",
                     "wrong winners or failures"));
  for (const std::string &fault : report.faults)
    fmt::print("  {}\n", fault);
  fmt::print("  move it away, and what it held is measured again\n");
}

Result<int> runDbVerify(const DbOptions &options) {
  std::vector<std::string> files = options.files;
  if (files.empty()) {
    MGPU_TRY_ASSIGN(std::string path, db::databasePath(options.database));
    files.push_back(std::move(path));
  }
  json out = json::array();
  size_t numDamaged = 0;
  std::vector<Error> unread;
  for (const std::string &file : files) {
    Result<db::VerifyReport> report = db::verify(file);
    if (!report) {
      unread.push_back(report.error());
      if (options.json)
        out.push_back({{"database", file}, {"error", report.error().message}});
      else
        fmt::print("{}: not read\n", file);
      continue;
    }
    numDamaged += !report->isSound();
    if (options.json)
      out.push_back(toJson(file, *report));
    else
      print(file, *report);
  }
  if (options.json)
    tools::printJson(
        {{"ok", unread.empty() && numDamaged == 0}, {"results", out}});
  for (size_t k = 1; k < unread.size(); ++k) // the first is this command's own
    fmt::print(stderr, "mgpu-tune: error: {}\n", unread[k].message);
  if (!unread.empty())
    return fail(std::move(unread.front()));
  if (numDamaged > 0)
    return fail(ErrorKind::Invalid,
                fmt::format("{} of {} damaged", numDamaged,
                            counted(files.size(), "database")));
  return 0;
}

} // namespace mgpu::tools

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// bench-db: what the database costs when it holds many measurements, beside
// the plainest SQLite table that answers the same question, in the same run.
//   open      a new connection, schema checked, ready to answer
//   look-up   the winner of a problem that was measured
//   fallback  of one that was not, with the regret (TuningStore::lookUp)
//   failed?   whether a configuration is under quarantine
//   record    one trial, safe from a power cut when it returns
// The plain table is (problem, configuration, median) with an index of problem
// and median: no failures, no seals, no nearest problem. It has the same
// journal. The files were just written, so their pages are in memory. Problems
// are drawn at random, ours and the plain one's in turn.
#include "db/Database.h"
#include "db/Statement.h"
#include "db/TuningStore.h"
#include "support/Random.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <unistd.h>

using namespace mgpu;
using namespace mgpu::db;

namespace {

struct Options {
  uint64_t trials = 1'000'000;
  uint64_t perProblem = 1000;
  uint64_t samples = 300;
  std::string folder;
  bool json = false;
};

constexpr uint64_t shapesOfAProgram = 20;

TuningProblem problemOf(uint64_t number) {
  TuningProblem problem;
  problem.program = fmt::format("program {:064x}", number / shapesOfAProgram);
  problem.shape = fmt::format("k=4096,m={},n=4096,type=bf16",
                              64 + 64 * (number % shapesOfAProgram));
  problem.device = "NVIDIA H100 80GB HBM3";
  problem.architecture = "sm_90";
  problem.driver = "driver 580.95.05, NVRTC 13.0, NCCL 2.28.3";
  problem.environment = "1 device, clocks 1980 MHz";
  problem.policy = "cold, median of 20";
  return problem;
}

Trial trialOf(uint64_t number, Random &random) {
  Trial trial;
  trial.configuration =
      fmt::format("block_x={},block_y={},items={},tile={},unroll={}",
                  32 << (number % 5), 1 << (number / 5 % 4),
                  1 + number / 20 % 8, 1 + number / 160 % 16, number / 2560);
  if (random.below(20) == 0) {
    trial.status = TrialStatus::OverLimit;
    trial.sentence = "needs 300 registers of 255";
  } else {
    trial.medianUs = trial.meanUs = 100 + 900 * random.uniform();
    trial.lowUs = trial.medianUs * 0.99;
    trial.highUs = trial.medianUs * 1.01;
    trial.samples = 20;
  }
  trial.seconds = 0.25;
  trial.provenance = {1'700'000'000'000 + int64_t(number), "0.1.0", "node7",
                      R"({"clock_mhz":1980,"temperature_c":41})"};
  return trial;
}

struct Timed {
  std::vector<double> us;
  double quantile(double q) {
    std::sort(us.begin(), us.end());
    return us.empty() ? 0 : us[size_t(q * double(us.size() - 1))];
  }
};

template <typename F>
Result<void> timeOne(Timed &into, F &&run) {
  auto start = std::chrono::steady_clock::now();
  MGPU_TRY(run());
  std::chrono::duration<double, std::micro> took =
      std::chrono::steady_clock::now() - start;
  into.us.push_back(took.count());
  return {};
}

/// The plain table.
struct Plain {
  static Result<Database> open(const std::string &path) {
    MGPU_TRY_ASSIGN(Database database, Database::open(path));
    MGPU_TRY(database.execute(
        "CREATE TABLE IF NOT EXISTS results(problem TEXT, configuration TEXT, "
        "median REAL); CREATE INDEX IF NOT EXISTS best ON results(problem, "
        "median)"));
    return database;
  }
  static Result<void> insert(Database &database, const TuningProblem &problem,
                             const Trial &trial) {
    MGPU_TRY_ASSIGN(
        Statement insert,
        Statement::prepare(database, "INSERT INTO results VALUES(?, ?, ?)"));
    return insert.bind(problem.key())
        .bind(trial.configuration)
        .bind(trial.medianUs)
        .run();
  }
  static Result<void> find(Database &database, const TuningProblem &problem) {
    MGPU_TRY_ASSIGN(Statement query,
                    Statement::prepare(database,
                                       "SELECT configuration, median FROM "
                                       "results WHERE problem = ? AND median > "
                                       "0 ORDER BY median LIMIT 1"));
    MGPU_TRY_ASSIGN(bool row, query.bind(problem.key()).step());
    return row ? Result<void>()
               : fail(ErrorKind::Internal, "the plain table lost a problem");
  }
};

Result<void> fill(const Options &options, const std::string &ours,
                  const std::string &plain) {
  MGPU_TRY_ASSIGN(TuningStore store, TuningStore::open(ours));
  MGPU_TRY_ASSIGN(Database table, Plain::open(plain));
  // Only the contents of the files matter.
  MGPU_TRY(store.database().execute("PRAGMA synchronous=OFF"));
  MGPU_TRY(table.execute("PRAGMA synchronous=OFF"));
  Random random(1);
  for (uint64_t first = 0; first < options.trials;
       first += options.perProblem) {
    TuningProblem problem = problemOf(first / options.perProblem);
    std::vector<Trial> trials;
    for (uint64_t k = 0; k < options.perProblem; ++k)
      trials.push_back(trialOf(k, random));
    MGPU_TRY(store.record(problem, trials));
    MGPU_TRY_ASSIGN(Transaction transaction, Transaction::write(table));
    for (const Trial &trial : trials)
      MGPU_TRY(Plain::insert(table, problem, trial));
    MGPU_TRY(transaction.commit());
  }
  return {};
}

struct Row {
  const char *name;
  Timed ours, plain;
};

Result<std::vector<Row>> measure(const Options &options,
                                 const std::string &ours,
                                 const std::string &plain) {
  std::vector<Row> rows{{"open", {}, {}},
                        {"look-up", {}, {}},
                        {"fallback", {}, {}},
                        {"failed?", {}, {}},
                        {"record", {}, {}}};
  for (uint64_t k = 0; k < options.samples; ++k) {
    MGPU_TRY(timeOne(rows[0].ours, [&]() -> Result<void> {
      MGPU_TRY(TuningStore::open(ours));
      return {};
    }));
    MGPU_TRY(timeOne(rows[0].plain, [&]() -> Result<void> {
      MGPU_TRY(Plain::open(plain));
      return {};
    }));
  }
  MGPU_TRY_ASSIGN(TuningStore store, TuningStore::open(ours));
  MGPU_TRY_ASSIGN(Database table, Plain::open(plain));
  Random random(2);
  uint64_t problems =
      (options.trials + options.perProblem - 1) / options.perProblem;
  auto isMatch = [](const Result<LookUp> &found, Match wanted) -> Result<void> {
    if (!found)
      return fail(found.error());
    return found->match == wanted
               ? Result<void>()
               : fail(ErrorKind::Internal,
                      fmt::format("a look-up found '{}' instead of '{}'",
                                  matchName(found->match), matchName(wanted)));
  };
  for (uint64_t k = 0; k < options.samples; ++k) {
    TuningProblem problem = problemOf(random.below(problems));
    TuningProblem other = problem;
    // Between two that were measured.
    other.shape = fmt::format("k=4096,m={},n=4096,type=bf16",
                              65 + 64 * random.below(shapesOfAProgram));
    std::string configuration =
        trialOf(random.below(options.perProblem), random).configuration;
    MGPU_TRY(timeOne(rows[1].ours, [&] {
      return isMatch(store.lookUp(problem), Match::Exact);
    }));
    MGPU_TRY(
        timeOne(rows[1].plain, [&] { return Plain::find(table, problem); }));
    MGPU_TRY(timeOne(rows[2].ours, [&] {
      return isMatch(store.lookUp(other), Match::OtherShape);
    }));
    MGPU_TRY(timeOne(rows[3].ours, [&]() -> Result<void> {
      MGPU_TRY(store.isQuarantined(problem, configuration));
      return {};
    }));
  }
  for (uint64_t k = 0; k < std::min<uint64_t>(options.samples, 100); ++k) {
    TuningProblem problem = problemOf(random.below(problems));
    Trial trial = trialOf(options.perProblem + k, random);
    MGPU_TRY(
        timeOne(rows[4].ours, [&] { return store.record(problem, trial); }));
    MGPU_TRY(timeOne(rows[4].plain,
                     [&] { return Plain::insert(table, problem, trial); }));
  }
  return rows;
}

Result<void> run(const Options &options) {
  std::string base = options.folder.empty()
                         ? std::filesystem::temp_directory_path().string()
                         : options.folder;
  std::string folder = base + "/mgpu-bench-db-XXXXXX";
  if (!::mkdtemp(folder.data()))
    return fail(ErrorKind::Usage,
                fmt::format("cannot make a folder in '{}'", base));
  struct Remove {
    std::string path;
    ~Remove() {
      std::error_code none;
      std::filesystem::remove_all(path, none);
    }
  } remove{folder};
  std::string ours = folder + "/ours.db", plain = folder + "/plain.db";
  auto start = std::chrono::steady_clock::now();
  MGPU_TRY(fill(options, ours, plain));
  std::chrono::duration<double> filled =
      std::chrono::steady_clock::now() - start;
  MGPU_TRY_ASSIGN(auto rows, measure(options, ours, plain));
  uint64_t bytes = std::filesystem::file_size(ours);
  uint64_t plainBytes = std::filesystem::file_size(plain);
  nlohmann::json out{{"trials", options.trials},
                     {"fill_seconds", filled.count()},
                     {"bytes", bytes},
                     {"plain_bytes", plainBytes}};
  if (!options.json)
    fmt::print("{} trials, {:.0f} MB (plain {:.0f} MB), both filled in {:.1f} "
               "s\n{:<10} {:>10} {:>10} {:>10} {:>10}   us\n",
               options.trials, double(bytes) / 1e6, double(plainBytes) / 1e6,
               filled.count(), "", "median", "p99", "plain", "plain p99");
  for (Row &row : rows) {
    out[row.name] = {{"median_us", row.ours.quantile(0.5)},
                     {"p99_us", row.ours.quantile(0.99)}};
    if (!row.plain.us.empty()) {
      out[row.name]["plain_median_us"] = row.plain.quantile(0.5);
      out[row.name]["plain_p99_us"] = row.plain.quantile(0.99);
    }
    auto shown = [](Timed &timed, double q) {
      return timed.us.empty() ? std::string("-")
                              : fmt::format("{:.1f}", timed.quantile(q));
    };
    if (!options.json)
      fmt::print("{:<10} {:>10} {:>10} {:>10} {:>10}\n", row.name,
                 shown(row.ours, 0.5), shown(row.ours, 0.99),
                 shown(row.plain, 0.5), shown(row.plain, 0.99));
  }
  if (options.json)
    fmt::print("{}\n", out.dump(2));
  return {};
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("What the tuning database costs.", "bench-db");
  Options options;
  app.add_option("--trials", options.trials, "Measurements in the file")
      ->check(CLI::Range(uint64_t(1), uint64_t(100'000'000)))
      ->capture_default_str();
  app.add_option("--per-problem", options.perProblem, "Of each problem")
      ->check(CLI::Range(uint64_t(1), uint64_t(1'000'000)))
      ->capture_default_str();
  app.add_option("--samples", options.samples, "Of each operation")
      ->check(CLI::Range(uint64_t(1), uint64_t(1'000'000)))
      ->capture_default_str();
  app.add_option("--folder", options.folder,
                 "Where the files lie while it runs; else that of TMPDIR");
  app.add_flag("--json", options.json, "Print the result as JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : int(ErrorKind::Usage);
  }
  auto done = run(options);
  if (!done)
    fmt::print(stderr, "bench-db: error: {}\n", done.error().message);
  return done ? 0 : int(done.error().kind);
}

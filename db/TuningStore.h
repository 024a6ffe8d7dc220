// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DB_TUNINGSTORE_H
#define MGPU_DB_TUNINGSTORE_H

// Keeps what was measured, for good: every trial of every problem, the failures
// that must not be launched again, and the winners.

#include "db/Database.h"
#include "db/Trial.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace mgpu::db {

/// How near to a problem a stored one is, the nearest first. Each grade allows
/// what the ones before it allow to differ.
enum class Match {
  Exact,
  OtherShape,
  OtherDriver, ///< or environment, or measuring policy
  OtherDevice, ///< but the same architecture
  None,
};
std::string_view matchName(Match match);

/// The likely cost of a fallback: time over that of the unknown best, less one,
/// so 0.05 is 5 % slower.
struct Regret {
  double expected = 0;
  double worst = 0;
  /// How it was found, as a clause: "between 3 pairs of problems ...".
  std::string basis;
};

struct LookUp {
  Match match = Match::None;
  TuningProblem problem; ///< the one found; unless `match` is None
  Trial trial;           ///< its winner; unless `match` is None
  bool fromSite = false;
  std::string reason; ///< what was not there, and what is taken: one sentence
  /// The likely cost of a fallback, where anything can be said.
  std::optional<Regret> regret;
};

/// Rows of the file, with what could not be read left out.
struct Trials {
  std::vector<Trial> trials; ///< the oldest first, the site's before ours
  uint64_t damaged = 0;
};

struct ProblemSummary {
  uint64_t trials = 0, failed = 0; ///< in both files together
  std::optional<Trial> best;
};

struct StoreOptions {
  DatabaseOptions database;
  /// A read-only file under this one: what is not found here is looked up
  /// there. Empty: none.
  std::string site;
};

/// Like Database, used by one thread at a time and not carried over a fork().
/// Any number of processes may have the file open.
class TuningStore {
public:
  static Result<TuningStore> open(const std::string &path,
                                  const StoreOptions &options = {});
  TuningStore(TuningStore &&) noexcept;
  TuningStore &operator=(TuningStore &&) noexcept;
  ~TuningStore();

  /// Stores the trial in one transaction: when it returns, a killed process
  /// does not lose it. A failure puts its configuration under quarantine for
  /// this problem, for good, whatever else was or will be measured of it. The
  /// winner is the configuration with the lowest median among those not under
  /// quarantine. If one was measured several times, the trial with the most
  /// samples counts, and the fastest of those with equally many. So a worse
  /// configuration never replaces a better one.
  Result<void> record(const TuningProblem &problem, const Trial &trial);
  /// Records many trials, all or none.
  Result<void> record(const TuningProblem &problem,
                      std::span<const Trial> trials);

  /// Records those trials that are not stored yet, all or none; says how many.
  Result<uint64_t> recordMissing(const TuningProblem &problem,
                                 std::span<const Trial> trials);

  Result<Trials> trials(const TuningProblem &problem);
  /// None where nothing of this problem was measured and worked.
  Result<std::optional<Trial>> best(const TuningProblem &problem);
  /// The winner of the problem, else of the nearest one stored.
  ///
  /// Regret of a fallback from problem F: where this file holds other pairs of
  /// problems (A, B) of the same program that differ as F and the one asked
  /// for do, and A's winner was measured on B, it is the mean and the maximum
  /// over the pairs of t_B(winner of A) / t_B(winner of B) - 1. Without such a
  /// pair it is what F's winner would cost if F's ranking said nothing about
  /// the problem, so that it were a configuration drawn at random:
  /// mean(t_F) / t_F(winner) - 1, the worst max(t_F) / t_F(winner) - 1, over
  /// the trials of F that worked.
  Result<LookUp> lookUp(const TuningProblem &problem);
  /// The failure, if the configuration is under quarantine for this problem.
  Result<std::optional<Trial>> quarantined(const TuningProblem &problem,
                                           const std::string &configuration);
  Result<bool> isQuarantined(const TuningProblem &problem,
                             const std::string &configuration);

  /// Every problem of both files, once, by ascending text.
  Result<std::vector<TuningProblem>> problems();
  Result<ProblemSummary> summary(const TuningProblem &problem);
  /// After trials were removed. Within a transaction of the caller's.
  Result<void> rebuildWinners();
  /// Rows whose seal was found broken since the file was opened.
  uint64_t damaged() const;

  const std::string &path() const;
  Database &database();

private:
  struct File;
  TuningStore();
  std::unique_ptr<File> user, site;
};

} // namespace mgpu::db

#endif // MGPU_DB_TUNINGSTORE_H

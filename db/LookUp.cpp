// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "db/LookUp.h"

#include "support/Number.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mgpu::db {
namespace {

/// Positive numbers have a logarithm to compare.
std::optional<double> positiveNumber(const std::string &text) {
  auto value = numberFrom<double>(text);
  return value && *value > 0 ? value : std::nullopt;
}

constexpr double octavesOfAWord = 8;

/// The fields in which a stored problem differs.
struct Difference {
  bool shape = false, setting = false, device = false;
  Match grade() const {
    return device    ? Match::OtherDevice
           : setting ? Match::OtherDriver
           : shape   ? Match::OtherShape
                     : Match::Exact;
  }
  bool operator==(const Difference &) const = default;
};

struct Candidate {
  ProblemRow row;
  Difference difference;
  double distance = 0;
  bool fromSite = false;
};

Difference differenceOf(const ProblemRow &a, const ProblemRow &b) {
  return {a.shape != b.shape, a.setting != b.setting, a.device != b.device};
}

bool isNearer(const Candidate &a, const Candidate &b) {
  auto rank = [](const Candidate &each) {
    return std::tuple(each.difference.grade(), each.difference.setting,
                      each.distance, each.fromSite, -each.row.id);
  };
  return rank(a) < rank(b);
}

Result<std::vector<Candidate>> candidates(StoreFile &file, bool isSite,
                                          const TuningProblem &problem) {
  ProblemRow asked{0, problem.device, problem.settingKey(), problem.shape};
  MGPU_TRY_ASSIGN(auto rows, file.family(problem.familyKey()));
  std::vector<Candidate> found;
  for (ProblemRow &row : rows) {
    Candidate candidate{std::move(row), {}, 0, isSite};
    candidate.difference = differenceOf(candidate.row, asked);
    if (candidate.difference.grade() == Match::Exact)
      continue;
    candidate.distance = shapeDistance(candidate.row.shape, problem.shape);
    found.push_back(std::move(candidate));
  }
  return found;
}

/// So many of the problems nearest to the one asked for are compared with each
/// other: each pair costs a query.
constexpr size_t mostCompared = 4;

/// The formula is TuningStore::lookUp()'s.
Result<std::optional<Regret>> estimateRegret(StoreFile &file,
                                             const std::vector<Candidate> &near,
                                             Difference difference,
                                             const Winner &taken) {
  struct Known {
    const ProblemRow *row;
    Winner winner;
  };
  std::vector<Known> known;
  for (const Candidate &each : near) {
    if (known.size() == mostCompared)
      break;
    MGPU_TRY_ASSIGN(auto winner, file.winner(each.row.id));
    if (winner)
      known.push_back({&each.row, std::move(*winner)});
  }
  Regret regret;
  size_t pairs = 0;
  for (const Known &a : known)
    for (const Known &b : known) {
      if (&a == &b || !(differenceOf(*a.row, *b.row) == difference))
        continue;
      MGPU_TRY_ASSIGN(
          auto there,
          file.findConfiguration(b.row->id, a.winner.row.trial.configuration));
      if (!there)
        continue;
      MGPU_TRY_ASSIGN(auto rows, file.trials(b.row->id, *there));
      bool failed = std::any_of(rows.begin(), rows.end(), [](const auto &row) {
        return row.trial.status != TrialStatus::Ok;
      });
      auto figure = chooseWinner(rows, [&](RowId) { return failed; });
      if (!figure)
        continue;
      double loss = figure->row.trial.medianUs / b.winner.row.trial.medianUs;
      regret.expected += loss - 1;
      regret.worst = std::max(regret.worst, loss - 1);
      ++pairs;
    }
  if (pairs > 0) {
    regret.expected /= double(pairs);
    regret.basis = fmt::format("what the winners of {} stored pairs of "
                               "problems lose on each other",
                               pairs);
    return regret;
  }
  if (taken.measured < 2)
    return std::nullopt;
  double best = taken.row.trial.medianUs;
  regret.expected =
      std::max(0.0, taken.sumUs / double(taken.measured) / best - 1);
  regret.worst = std::max(0.0, taken.maxUs / best - 1);
  regret.basis = fmt::format("the spread of {} trials of the problem found, as "
                             "if its ranking said nothing",
                             taken.measured);
  return regret;
}

/// "shape 'n=1'", "driver ... or policy", for the sentence of a miss.
std::string whatDiffers(Difference difference, const TuningProblem &asked,
                        const TuningProblem &found) {
  std::string text;
  auto add = [&](const std::string &name, const std::string &there,
                 const std::string &here) {
    if (there != here)
      text += fmt::format("{}{} '{}' instead of '{}'", text.empty() ? "" : ", ",
                          name, there, here);
  };
  add("device", found.device, asked.device);
  add("driver", found.driver, asked.driver);
  add("environment", found.environment, asked.environment);
  add("measuring policy", found.policy, asked.policy);
  add("shape", found.shape, asked.shape);
  return text;
}

} // namespace

double shapeDistance(const std::string &a, const std::string &b) {
  if (a == b)
    return 0;
  auto first = parsePairs(a), second = parsePairs(b);
  if (!first || !second)
    return octavesOfAWord;
  double distance = 0;
  for (const auto &[name, value] : *first) {
    auto other = second->find(name);
    if (other == second->end()) {
      distance += octavesOfAWord;
      continue;
    }
    if (value != other->second) {
      auto x = positiveNumber(value), y = positiveNumber(other->second);
      distance += x && y ? std::abs(std::log2(*x / *y)) : octavesOfAWord;
    }
    second->erase(other);
  }
  return distance + octavesOfAWord * double(second->size());
}

Result<ReadState> ReadState::begin(StoreFile &user, StoreFile *site) {
  MGPU_TRY_ASSIGN(Transaction transaction, Transaction::read(user.database));
  ReadState state(std::move(transaction));
  if (site) {
    MGPU_TRY_ASSIGN(Transaction below, Transaction::read(site->database));
    state.site.emplace(std::move(below));
  }
  return state;
}

Result<std::optional<Found>> findExact(StoreFile &user, StoreFile *site,
                                       const TuningProblem &problem) {
  std::optional<Found> found;
  std::vector<std::pair<StoreFile *, RowId>> holders;
  for (StoreFile *file : {site, &user}) {
    if (!file)
      continue;
    MGPU_TRY_ASSIGN(auto id, file->findProblem(problem));
    if (!id)
      continue;
    holders.emplace_back(file, *id);
    MGPU_TRY_ASSIGN(auto winner, file->winner(*id));
    if (winner && (!found || winner->row.trial.medianUs <=
                                 found->winner.row.trial.medianUs))
      found = Found{std::move(*winner), file == site};
  }
  if (!found || holders.size() < 2)
    return found;
  auto [other, otherId] = holders[found->fromSite ? 1 : 0];
  MGPU_TRY_ASSIGN(
      auto failure,
      other->failure(otherId, found->winner.row.trial.configuration));
  if (!failure)
    return found;
  // Numbers of rows of two files mean nothing to each other.
  std::map<std::string, RowId> numbers;
  std::map<RowId, bool> out;
  std::vector<TrialRow> all;
  size_t ofSite = 0;
  for (auto [file, id] : holders) {
    MGPU_TRY_ASSIGN(auto rows, file->trials(id));
    for (TrialRow &row : rows) {
      auto at = numbers.try_emplace(row.trial.configuration,
                                    RowId(numbers.size() + 1));
      row.configuration = at.first->second;
      row.id = RowId(all.size() + 1);
      out[row.configuration] |= row.trial.status != TrialStatus::Ok;
      all.push_back(std::move(row));
    }
    if (file == site)
      ofSite = all.size();
  }
  auto winner = chooseWinner(all, [&](RowId id) { return out[id]; });
  if (!winner)
    return std::nullopt;
  bool fromSite = winner->row.id <= RowId(ofSite);
  return Found{std::move(*winner), fromSite};
}

Result<LookUp> lookUp(StoreFile &user, StoreFile *site,
                      const TuningProblem &problem) {
  MGPU_TRY_ASSIGN(ReadState state, ReadState::begin(user, site));
  LookUp answer;
  MGPU_TRY_ASSIGN(auto exact, findExact(user, site, problem));
  if (exact) {
    answer.match = Match::Exact;
    answer.problem = problem;
    answer.trial = std::move(exact->winner.row.trial);
    answer.fromSite = exact->fromSite;
    answer.reason = "this problem was measured";
    return answer;
  }
  MGPU_TRY_ASSIGN(auto near, candidates(user, false, problem));
  if (site) {
    MGPU_TRY_ASSIGN(auto below, candidates(*site, true, problem));
    near.insert(near.end(), below.begin(), below.end());
  }
  std::sort(near.begin(), near.end(), isNearer);
  for (const Candidate &candidate : near) {
    StoreFile &file = candidate.fromSite ? *site : user;
    MGPU_TRY_ASSIGN(auto found, file.problem(candidate.row.id));
    if (!found || found->familyKey() != problem.familyKey())
      continue;
    MGPU_TRY_ASSIGN(auto winner, file.winner(candidate.row.id));
    if (!winner)
      continue;
    std::vector<Candidate> sameFile;
    for (const Candidate &each : near)
      if (each.fromSite == candidate.fromSite &&
          sameFile.size() < 2 * mostCompared)
        sameFile.push_back(each);
    MGPU_TRY_ASSIGN(
        answer.regret,
        estimateRegret(file, sameFile, candidate.difference, *winner));
    answer.match = candidate.difference.grade();
    answer.reason = fmt::format(
        "no configuration of this problem was measured and worked; taken is "
        "the winner of the nearest one: {}",
        whatDiffers(candidate.difference, problem, *found));
    answer.problem = std::move(*found);
    answer.trial = std::move(winner->row.trial);
    answer.fromSite = candidate.fromSite;
    return answer;
  }
  answer.reason = near.empty()
                      ? fmt::format("no problem of this program was measured "
                                    "on architecture '{}'",
                                    problem.architecture)
                      : fmt::format("of {} problems of this program on "
                                    "architecture '{}' none has a winner",
                                    near.size(), problem.architecture);
  return answer;
}

} // namespace mgpu::db

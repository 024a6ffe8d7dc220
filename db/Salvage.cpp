// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "db/Salvage.h"

#include "db/PageScan.h"
#include "db/RowSeals.h"
#include "support/FileIO.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>

namespace mgpu::db {
namespace {

int64_t integerOf(const Value &value) {
  auto *number = std::get_if<int64_t>(&value);
  return number ? *number : 0;
}

/// A whole number in a REAL column is stored as an integer.
double realOf(const Value &value) {
  auto *number = std::get_if<double>(&value);
  return number ? *number : double(integerOf(value));
}

std::string textOf(const Value &value) {
  auto *text = std::get_if<std::string>(&value);
  return text ? *text : std::string();
}

/// The tables of the schema as far as trials need them, by their columns
/// (db/Schema.cpp). The number of columns tells them apart, the seal decides.
struct Tables {
  struct Configuration {
    RowId problem = 0;
    std::string text;
    auto operator<=>(const Configuration &) const = default;
  };
  struct Unchecked {
    TrialRow row;
    RowId origin = 0;
    int64_t seal = 0;
  };

  void add(const Record &record) {
    const auto &c = record.columns;
    RowId id = record.rowId;
    if (c.size() == 7) {
      auto problem = TuningProblem::parse(textOf(c[6]));
      if (problem && integerOf(c[5]) == sealOfProblem(id, *problem))
        problems.emplace(id, std::move(*problem));
    } else if (c.size() == 5) {
      // sqlite_schema has five columns as well, and origins.
      Configuration row{integerOf(c[1]), textOf(c[4])};
      if (integerOf(c[3]) ==
          sealOfConfiguration(id, row.problem, integerOf(c[2]), row.text))
        configurations[id].insert(row);
      Provenance origin{0, textOf(c[1]), textOf(c[2]), textOf(c[4])};
      if (integerOf(c[3]) == sealOfOrigin(id, origin))
        origins.emplace(id, std::move(origin));
    } else if (c.size() == 14) {
      addTrial(id, c);
    }
  }

  void addTrial(RowId id, const std::vector<Value> &c) {
    Unchecked found{
        {id, integerOf(c[1]), {}}, integerOf(c[2]), integerOf(c[12])};
    Trial &trial = found.row.trial;
    int64_t status = integerOf(c[4]);
    if (status < 0 || status > int64_t(TrialStatus::Invalid))
      return;
    trial.provenance.timeMs = integerOf(c[3]);
    trial.status = TrialStatus(status);
    trial.medianUs = realOf(c[5]);
    trial.meanUs = realOf(c[6]);
    trial.spreadUs = realOf(c[7]);
    trial.lowUs = realOf(c[8]);
    trial.highUs = realOf(c[9]);
    trial.samples = uint64_t(integerOf(c[10]));
    trial.seconds = realOf(c[11]);
    trial.sentence = textOf(c[13]);
    trials[id].push_back(std::move(found));
  }

  std::map<RowId, TuningProblem> problems;
  std::map<RowId, std::set<Configuration>> configurations;
  std::map<RowId, Provenance> origins;
  std::map<RowId, std::vector<Unchecked>> trials;
};

} // namespace

Result<Salvaged> salvageFile(const std::string &path) {
  MGPU_TRY_ASSIGN(auto file, readFile(path));
  std::vector<std::byte> wal;
  std::error_code none;
  if (std::filesystem::is_regular_file(path + "-wal", none)) {
    MGPU_TRY_ASSIGN(wal, readFile(path + "-wal"));
  }
  Tables tables;
  scanPages(file, wal, [&](const Record &record) { tables.add(record); });
  Salvaged out;
  std::map<RowId, std::vector<Trial>> ofProblem;
  for (auto &[id, versions] : tables.trials) {
    // A row may be found in several pages, and more than once sound.
    std::set<int64_t> taken;
    for (auto &found : versions)
      for (const auto &each : tables.configurations[found.row.configuration]) {
        Trial &trial = found.row.trial;
        trial.configuration = each.text;
        if (!tables.problems.count(each.problem) ||
            sealOfTrial(each.problem, found.origin, found.row) != found.seal ||
            !check(trial))
          continue;
        if (!taken.insert(found.seal).second)
          break;
        if (auto at = tables.origins.find(found.origin);
            at != tables.origins.end()) {
          int64_t timeMs = trial.provenance.timeMs;
          trial.provenance = at->second;
          trial.provenance.timeMs = timeMs;
        }
        ofProblem[each.problem].push_back(std::move(trial));
        break;
      }
    out.lost += taken.empty();
  }
  for (auto &[id, trials] : ofProblem)
    out.trials.emplace_back(tables.problems.at(id), std::move(trials));
  return out;
}

} // namespace mgpu::db

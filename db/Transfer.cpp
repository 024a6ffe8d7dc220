// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "db/Transfer.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace mgpu::db {

using nlohmann::json;

static constexpr int textVersion = 1;

Result<Transferred>
exportText(TuningStore &store, std::span<const std::string> keys,
           const std::function<Result<void>(std::string_view)> &sink) {
  std::vector<TuningProblem> wanted;
  if (keys.empty()) {
    MGPU_TRY_ASSIGN(wanted, store.problems());
  }
  for (const std::string &key : keys) {
    MGPU_TRY_ASSIGN(TuningProblem problem, findByKey(store, key));
    wanted.push_back(std::move(problem));
  }
  Transferred done;
  MGPU_TRY(sink(json{{"mgpu_db", textVersion}}.dump() + "\n"));
  for (const TuningProblem &problem : wanted) {
    MGPU_TRY_ASSIGN(Trials found, store.trials(problem));
    ++done.problems;
    done.trials += found.trials.size();
    done.damaged += found.damaged;
    MGPU_TRY(sink(json{{"problem", problem.text()}}.dump() + "\n"));
    for (const Trial &trial : found.trials)
      MGPU_TRY(sink(trialToJson(trial) + "\n"));
  }
  return done;
}

namespace {

/// Lines of text with the name an error gives them.
class Lines {
public:
  Lines(std::string_view text, const std::string &name)
      : rest(text), file(name) {}
  bool next(std::string_view &line) {
    while (!rest.empty()) {
      size_t end = std::min(rest.find('\n'), rest.size());
      line = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      ++number;
      if (line.find_first_not_of(" \t\r") != std::string_view::npos)
        return true;
    }
    return false;
  }
  std::string name() const { return fmt::format("{}:{}", file, number); }

private:
  std::string_view rest;
  const std::string &file;
  uint64_t number = 0;
};

Result<TuningProblem> problemOfLine(const json &line, const std::string &name) {
  if (!line["problem"].is_string())
    return fail(ErrorKind::Invalid,
                fmt::format("{}: 'problem' is not a text", name));
  auto problem = TuningProblem::parse(line["problem"].get<std::string>());
  if (!problem)
    return fail(ErrorKind::Invalid,
                fmt::format("{}: {}", name, problem.error().message));
  return problem;
}

} // namespace

Result<std::vector<ProblemTrials>> parseText(std::string_view text,
                                             const std::string &name) {
  Lines lines(text, name);
  std::string_view line;
  auto parse = [&](json &out) {
    out = json::parse(line, nullptr, false);
    return out.is_object();
  };
  json header;
  if (!lines.next(line) || !parse(header) || !header.contains("mgpu_db"))
    return fail(
        ErrorKind::Invalid,
        fmt::format(
            "'{}' is neither a database nor what `mgpu-tune db export` writes",
            name));
  if (header["mgpu_db"] != textVersion)
    return fail(
        ErrorKind::Unsupported,
        fmt::format("'{}' is of a later version: use a newer mgpu", name));
  std::vector<ProblemTrials> all;
  while (lines.next(line)) {
    json each;
    if (parse(each) && each.contains("problem")) {
      MGPU_TRY_ASSIGN(TuningProblem next, problemOfLine(each, lines.name()));
      all.push_back({std::move(next), {}});
      continue;
    }
    MGPU_TRY_ASSIGN(Trial trial, trialFromJson(line, lines.name()));
    if (all.empty())
      return fail(
          ErrorKind::Invalid,
          fmt::format("{}: a trial before the first problem", lines.name()));
    if (auto sound = check(trial); !sound)
      return fail(ErrorKind::Invalid,
                  fmt::format("{}: {}", lines.name(), sound.error().message));
    all.back().trials.push_back(std::move(trial));
  }
  return all;
}

static Result<void> record(TuningStore &store, const TuningProblem &problem,
                           std::span<const Trial> trials, Transferred &done) {
  MGPU_TRY_ASSIGN(uint64_t added, store.recordMissing(problem, trials));
  ++done.problems;
  done.trials += added;
  done.known += trials.size() - added;
  return {};
}

Result<Transferred> recordAll(TuningStore &store,
                              std::span<const ProblemTrials> all) {
  Transferred done;
  for (const ProblemTrials &each : all)
    MGPU_TRY(record(store, each.problem, each.trials, done));
  return done;
}

Result<Transferred> merge(TuningStore &store, const std::string &path) {
  Transferred done;
  StoreOptions options;
  options.database.access = Access::Untrusted;
  MGPU_TRY_ASSIGN(TuningStore from, TuningStore::open(path, options));
  MGPU_TRY_ASSIGN(auto problems, from.problems());
  for (const TuningProblem &problem : problems) {
    MGPU_TRY_ASSIGN(Trials found, from.trials(problem));
    done.damaged += found.damaged;
    // A sealed row may still say what no measurement can.
    std::erase_if(found.trials, [&](const Trial &trial) {
      bool wrong = !check(trial);
      done.damaged += wrong;
      return wrong;
    });
    MGPU_TRY(record(store, problem, found.trials, done));
  }
  return done;
}

Result<TuningProblem> findByKey(TuningStore &store, const std::string &prefix) {
  MGPU_TRY_ASSIGN(std::vector<TuningProblem> found, store.problems());
  std::erase_if(found, [&](const TuningProblem &each) {
    return !each.key().starts_with(prefix);
  });
  if (found.size() != 1)
    return fail(ErrorKind::Usage,
                fmt::format("{} the key '{}'; `mgpu-tune db list` shows them",
                            found.empty() ? "no problem has"
                                          : "several problems begin with",
                            prefix));
  return std::move(found[0]);
}

} // namespace mgpu::db

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// bench-cost: how far the cost model is from measured times it has not seen.
// Each row is predicted from all others; with --folds K the rows are dealt to
// K folds and each fold is predicted from the others; or, with --check, all
// rows of the one folder predict those of the other. Beside each model stands
// the baseline: an alpha-beta line per curve, fitted to the same rows, and the
// data sheet's roofline. --emit writes the curves that are part of the program
// (planner/cost/Fitted.inc).

#include "planner/cost/CollectiveTable.h"
#include "planner/cost/MatmulModel.h"
#include "support/FileIO.h"
#include "support/Random.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

using namespace mgpu;
using namespace mgpu::planner;

namespace {

struct Options {
  std::string tables, check, emit;
  uint32_t folds = 0; ///< 0: each row alone
  uint64_t seed = 1;
  bool json = false;
};

/// The GPUs of the tables, by the data sheets the topologies name.
MatmulRates ratesOf(uint32_t architecture, bool isBf16) {
  bool blackwell = architecture >= 100;
  double flops = blackwell ? 2250e6 : 989.5e6; // per microsecond
  return {isBf16 ? flops : flops / 2, blackwell ? 8e6 : 3.35e6,
          blackwell ? 148.0 : 132.0};
}

using CurveKey = std::tuple<uint32_t, CollectiveOp, uint32_t>;
CurveKey keyOf(const CollectiveRow &row) {
  return {row.architecture, row.op, row.ranks};
}
std::map<CurveKey, std::vector<CollectiveRow>>
byCurve(const std::vector<CollectiveRow> &rows) {
  std::map<CurveKey, std::vector<CollectiveRow>> curves;
  for (const CollectiveRow &row : rows)
    curves[keyOf(row)].push_back(row);
  return curves;
}
using MatmulKey = std::pair<uint32_t, bool>;
std::map<MatmulKey, std::vector<MatmulRow>>
byType(const std::vector<MatmulRow> &rows) {
  std::map<MatmulKey, std::vector<MatmulRow>> types;
  for (const MatmulRow &row : rows)
    types[{row.architecture, row.isBf16}].push_back(row);
  return types;
}

template <typename Row>
using Predict = std::function<double(const Row &)>;
template <typename Row>
using Learn = std::function<Result<Predict<Row>>(const std::vector<Row> &)>;

Result<Predict<CollectiveRow>>
learnCurves(const std::vector<CollectiveRow> &rows, bool withRoot) {
  std::map<CurveKey, CollectiveCurve> fits;
  for (const auto &[key, of] : byCurve(rows))
    fits[key] = CollectiveCurve::fit(of, withRoot);
  return Predict<CollectiveRow>([fits](const CollectiveRow &row) {
    auto it = fits.find(keyOf(row));
    return it == fits.end() ? 0 : it->second.us(row.bytes);
  });
}

Result<Predict<CollectiveRow>>
learnTable(const std::vector<CollectiveRow> &rows) {
  MGPU_TRY_ASSIGN(CollectiveTable table, CollectiveTable::create(rows));
  return Predict<CollectiveRow>([table = std::move(table)](
                                    const CollectiveRow &row) {
    return table.us(row.architecture, row.op, row.ranks, row.bytes).value_or(0);
  });
}

Result<Predict<MatmulRow>> learnMatmul(const std::vector<MatmulRow> &rows) {
  std::map<MatmulKey, MatmulModel> models;
  for (const auto &[key, of] : byType(rows))
    models.emplace(key, MatmulModel::fit(of, ratesOf(key.first, key.second)));
  return Predict<MatmulRow>([models](const MatmulRow &row) {
    auto it = models.find({row.architecture, row.isBf16});
    return it == models.end()
               ? 0
               : it->second.us(productOf(row),
                               ratesOf(row.architecture, row.isBf16));
  });
}

Result<Predict<MatmulRow>> learnRoofline(const std::vector<MatmulRow> &) {
  return Predict<MatmulRow>([](const MatmulRow &row) {
    return rooflineUs(productOf(row), ratesOf(row.architecture, row.isBf16));
  });
}

struct Score {
  double median = 0, p95 = 0, worst = 0;
  size_t count = 0;
};
Score scoreOf(std::vector<double> errors) {
  std::sort(errors.begin(), errors.end());
  size_t n = errors.size();
  if (n == 0)
    return {};
  return {errors[n / 2], errors[std::min(n - 1, n * 95 / 100)], errors.back(),
          n};
}

template <typename Row>
using Errors = std::vector<std::pair<Row, double>>;

/// Each row's relative error, predicted from rows it is not among.
template <typename Row>
Result<Errors<Row>> heldOut(const std::vector<Row> &rows,
                            const std::vector<Row> &others,
                            const Options &options, const Learn<Row> &learn) {
  Errors<Row> errors;
  auto test = [&](const Predict<Row> &predict, const Row &row) {
    errors.emplace_back(row, std::abs(predict(row) / row.us - 1));
  };
  if (!options.check.empty()) {
    MGPU_TRY_ASSIGN(Predict<Row> predict, learn(rows));
    for (const Row &row : others)
      test(predict, row);
    return errors;
  }
  std::vector<size_t> deal(rows.size());
  std::iota(deal.begin(), deal.end(), 0);
  Random random(options.seed);
  for (size_t i = deal.size(); i > 1; --i)
    std::swap(deal[i - 1], deal[random.below(i)]);
  size_t folds = options.folds == 0 ? rows.size() : options.folds;
  for (size_t fold = 0; fold < folds; ++fold) {
    std::vector<Row> known, unknown;
    for (size_t i = 0; i < deal.size(); ++i)
      (i % folds == fold ? unknown : known).push_back(rows[deal[i]]);
    if (unknown.empty())
      continue;
    MGPU_TRY_ASSIGN(Predict<Row> predict, learn(known));
    for (const Row &row : unknown)
      test(predict, row);
  }
  return errors;
}

/// The score of the rows for which `counted` is `value`.
template <typename Row, typename Counted>
Score scoreOf(const Errors<Row> &errors, Counted counted, bool value) {
  std::vector<double> chosen;
  for (const auto &[row, error] : errors)
    if (counted(row) == value)
      chosen.push_back(error);
  return scoreOf(std::move(chosen));
}

std::string fittedText(const std::vector<CollectiveRow> &collectives,
                       const std::vector<MatmulRow> &matmuls) {
  std::string out =
      "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n"
      "// Made by `bench-cost --tables DIR --emit FILE`; do not edit.\n"
      "// Coefficients of CollectiveCurve (us, us/byte, us/sqrt(byte)) and of\n"
      "// MatmulModel, fitted to every other row of openxla/xla's measured\n"
      "// default_collective_perf_table and default_matmul_perf_table.\n";
  auto append = [&out](const std::string &text) { out += text; };
  static constexpr const char *names[] = {"AllGather",   "AllReduce",
                                          "AllToAll",    "ReduceScatter",
                                          "PermuteRing", "PermutePairs"};
  for (const auto &[key, rows] : byCurve(collectives)) {
    CollectiveCurve curve = CollectiveCurve::fit(rows);
    append(fmt::format("MGPU_COLLECTIVE({}, {}, {}, {:.4g}, {:.5g}, {:.4g})\n",
                       std::get<0>(key), names[size_t(std::get<1>(key))],
                       std::get<2>(key), curve.fixedUs, curve.usPerByte,
                       curve.usPerRoot));
  }
  for (const auto &[key, rows] : byType(matmuls)) {
    MatmulModel model = MatmulModel::fit(rows, ratesOf(key.first, key.second));
    append(fmt::format("MGPU_MATMUL({}, {}", key.first, key.second));
    size_t column = 99;
    for (double value : model.coefficients()) {
      out += column > 70 ? ",\n " : ",";
      column = column > 70 ? 1 : column;
      std::string text = fmt::format(" {:.5f}", value);
      column += text.size() + 1;
      out += text;
    }
    out += ")\n";
  }
  return out;
}

struct Line {
  std::string what, model;
  Score score;
  double median, p95; ///< targets; 0: none
};

/// Prints the lines; whether all targets are met.
bool report(const std::vector<Line> &lines, const Options &options) {
  bool met = true;
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Line &line : lines) {
    bool good = line.median == 0 ||
                (line.score.median < line.median && line.score.p95 < line.p95);
    met = met && good;
    if (options.json)
      out.push_back({{"what", line.what},
                     {"model", line.model},
                     {"median", line.score.median},
                     {"p95", line.score.p95},
                     {"worst", line.score.worst},
                     {"count", line.score.count}});
    else
      fmt::print("{:22} {:11} median {:6.2f} %  p95 {:6.2f} %  worst {:6.1f} % "
                 " of {}{}\n",
                 line.what, line.model, 100 * line.score.median,
                 100 * line.score.p95, 100 * line.score.worst, line.score.count,
                 line.median == 0
                     ? std::string()
                     : fmt::format("  (target {:.0f} %, {:.0f} %: "
                                   "{})",
                                   100 * line.median, 100 * line.p95,
                                   good ? "met" : "missed"));
  }
  if (options.json)
    fmt::print("{}\n", nlohmann::ordered_json{{"folds", options.folds},
                                              {"seed", options.seed},
                                              {"targets_met", met},
                                              {"rows", std::move(out)}}
                           .dump(1));
  return met;
}
/// The models' predictions of rows that they have not seen.
Result<std::vector<Line>>
judge(const Options &options, const std::vector<CollectiveRow> &collectives,
      const std::vector<CollectiveRow> &otherCollectives,
      const std::vector<MatmulRow> &matmuls,
      const std::vector<MatmulRow> &otherMatmuls) {
  std::vector<Line> lines;
  auto isLarge = [](const CollectiveRow &row) { return row.bytes >= 1 << 20; };
  std::pair<const char *, Learn<CollectiveRow>> collectiveModels[] = {
      {"table", learnTable},
      {"curves", [](auto &rows) { return learnCurves(rows, true); }},
      {"alpha-beta", [](auto &rows) { return learnCurves(rows, false); }}};
  for (auto &[name, learn] : collectiveModels) {
    bool judged = std::string_view(name) == "table";
    MGPU_TRY_ASSIGN(auto errors,
                    heldOut(collectives, otherCollectives, options, learn));
    lines.push_back({"collectives >= 1 MiB", name,
                     scoreOf(errors, isLarge, true), judged ? 0.05 : 0,
                     judged ? 0.35 : 0});
    lines.push_back(
        {"collectives < 1 MiB", name, scoreOf(errors, isLarge, false), 0, 0});
  }
  auto isBf16 = [](const MatmulRow &row) { return row.isBf16; };
  std::pair<const char *, Learn<MatmulRow>> matmulModels[] = {
      {"fit", learnMatmul}, {"roofline", learnRoofline}};
  for (auto &[name, learn] : matmulModels) {
    bool judged = std::string_view(name) == "fit";
    MGPU_TRY_ASSIGN(auto errors,
                    heldOut(matmuls, otherMatmuls, options, learn));
    lines.push_back({"matmul bf16", name, scoreOf(errors, isBf16, true),
                     judged ? 0.04 : 0, judged ? 0.15 : 0});
    lines.push_back({"matmul f32", name, scoreOf(errors, isBf16, false), 0, 0});
  }
  std::sort(lines.begin(), lines.end(), [](const Line &a, const Line &b) {
    return std::tie(a.what, a.model) < std::tie(b.what, b.model);
  });
  return lines;
}
Result<int> run(const Options &options) {
  namespace fs = std::filesystem;
  if (options.tables.empty() || !fs::exists(options.tables)) {
    fmt::print(stderr, "skipped: no tables; give --tables DIR, or MGPU_DATA\n");
    return 0;
  }
  std::vector<CollectiveRow> collectives, otherCollectives;
  std::vector<MatmulRow> matmuls, otherMatmuls;
  auto read = [](const std::string &folder, auto &c, auto &m) -> Result<void> {
    MGPU_TRY_ASSIGN(c, readCollectives(folder + "/collectives.csv"));
    MGPU_TRY_ASSIGN(m, readMatmuls(folder + "/matmul.csv"));
    return {};
  };
  MGPU_TRY(read(options.tables, collectives, matmuls));
  if (!options.check.empty())
    MGPU_TRY(read(options.check, otherCollectives, otherMatmuls));
  if (!options.emit.empty())
    MGPU_TRY(writeFileAtomic(options.emit, fittedText(collectives, matmuls)));

  MGPU_TRY_ASSIGN(
      std::vector<Line> lines,
      judge(options, collectives, otherCollectives, matmuls, otherMatmuls));
  return report(lines, options) ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("How far the cost model is from measured times it has not "
               "seen.\nExit code 1 where a target is missed.",
               "bench-cost");
  Options options;
  if (const char *data = std::getenv("MGPU_DATA"))
    options.tables = std::string(data) + "/tables";
  app.add_option("--tables", options.tables,
                 "Folder of collectives.csv and matmul.csv; default: "
                 "$MGPU_DATA/tables");
  app.add_option("--check", options.check,
                 "Folder of such tables to predict from all of --tables, "
                 "instead of folds");
  app.add_option("--folds", options.folds,
                 "Folds; 0: each row is predicted from all others")
      ->check(CLI::Range(0u, 1000u))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Deals the rows to the folds")
      ->capture_default_str();
  app.add_option("--emit", options.emit,
                 "Write the coefficients fitted to all rows, as "
                 "planner/cost/Fitted.inc holds them");
  app.add_flag("--json", options.json, "Print JSON");
  CLI11_PARSE(app, argc, argv);
  Result<int> code = run(options);
  if (code)
    return *code;
  fmt::print(stderr, "bench-cost: {}\n", code.error().message);
  return int(code.error().kind);
}

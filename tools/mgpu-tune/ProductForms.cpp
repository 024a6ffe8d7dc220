// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/ProductForms.h"

#include "db/FileSystem.h"
#include "device/cuda/CudaDriver.h"
#include "tools/mgpu-tune/AskInProcess.h"
#include "tools/mgpu-tune/DbCommand.h"
#include "tools/mgpu-tune/Target.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <unistd.h>

namespace mgpu::tune {

using nlohmann::json;

/// Of a problem's program.
static constexpr const char *problemHead = "product form ";

static Result<std::string> describeCards(const std::string &target) {
  MGPU_TRY_ASSIGN(CudaTarget cuda, parseCudaTarget(target));
  MGPU_TRY_ASSIGN(device::CudaMachine machine, device::inspectCuda());
  json cards = json::array();
  for (int card : cuda.cards) {
    if (size_t(card) >= machine.cards.size())
      return fail(ErrorKind::Absent,
                  fmt::format("there is no card {}: this machine shows {} (see "
                              "nvidia-smi and CUDA_VISIBLE_DEVICES)",
                              card, machine.cards.size()));
    const device::CudaMachine::Card &found = machine.cards[size_t(card)];
    cards.push_back({found.name, found.arch, machine.driver});
  }
  return cards.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<std::vector<CardIdentity>> cardsOfTarget(const std::string &target) {
  MGPU_TRY_ASSIGN(const std::string text,
                  askInProcess([&] { return describeCards(target); }));
  const json found = json::parse(text, nullptr, false);
  std::vector<CardIdentity> cards;
  for (const json &card : found)
    if (card.is_array() && card.size() == 3)
      cards.push_back({card[0], card[1], card[2]});
  if (cards.empty())
    return fail(ErrorKind::Internal, "the cards are not read back");
  return cards;
}

static db::Problem problemOf(const CardIdentity &card,
                             const std::string &form) {
  db::Problem problem;
  problem.program =
      fmt::format("{}{}, mgpu {}", problemHead, form, MGPU_VERSION);
  problem.device = card.name;
  problem.architecture = card.arch;
  problem.driver = "CUDA driver " + card.driver;
  problem.policy = "the bits of the host";
  return problem;
}

Result<void> recordForm(db::TuningStore &store, const CardIdentity &card,
                        const std::string &form, double medianUs,
                        const std::string &fault) {
  db::Trial trial;
  trial.configuration = db::pairsText({{"form", form}});
  trial.provenance.version = MGPU_VERSION;
  if (fault.empty()) {
    trial.medianUs = trial.meanUs = trial.lowUs = trial.highUs = medianUs;
    trial.samples = 1;
  } else {
    trial.status = db::TrialStatus::Wrong;
    trial.sentence = fault;
  }
  return store.record(problemOf(card, form), trial);
}

std::string passedForms(const Options &options, const IdentifyCards &identify) {
  if (!isCudaTarget(options.target) || !options.tensorCores.empty() ||
      !options.useTuned || options.needsPlan || !options.planFile.empty())
    return ""; // a plan in a file is of what any card runs
  auto path = db::databasePath(options.database);
  if (!path || access(path->c_str(), R_OK) != 0)
    return "";
  // What is wrong with the file, whoever needs it says.
  auto store = openStore(options, db::Access::ReadOnly, false);
  if (!store)
    return "";
  auto problems = store->problems();
  if (!problems ||
      std::none_of(problems->begin(), problems->end(),
                   [](const db::Problem &problem) {
                     return problem.program.starts_with(problemHead);
                   }))
    return "";
  auto cards = identify(options.target);
  if (!cards)
    return "";
  std::string forms;
  for (const char *form : formsToTry) {
    const bool passed = std::all_of(
        cards->begin(), cards->end(), [&](const CardIdentity &card) {
          auto best = store->best(problemOf(card, form));
          return best && *best;
        });
    if (passed)
      forms += (forms.empty() ? std::string(byRecord) : ",") + form;
  }
  return forms;
}

Result<int> runDbForm(const Options &options, const DbOptions &db) {
  const std::string target = options.target.empty() ? "cuda" : options.target;
  if (!isCudaTarget(target))
    return fail(ErrorKind::Usage,
                fmt::format("--target {}: a form passes on a card: name one as "
                            "cuda:0",
                            target));
  if (db.fault.empty() == (db.medianUs == 0))
    return fail(ErrorKind::Usage, "give --replay-us of replays that gave the "
                                  "right bits, or --failed with what went "
                                  "wrong");
  MGPU_TRY_ASSIGN(std::vector<CardIdentity> cards, cardsOfTarget(target));
  MGPU_TRY_ASSIGN(auto store, openStore(options, db::Access::Create, false));
  for (const CardIdentity &card : cards) {
    MGPU_TRY(recordForm(store, card, db.form, db.medianUs, db.fault));
    if (!options.json)
      fmt::print("{}: {} on {}, CUDA driver {}\n", db.form,
                 db.fault.empty() ? "passed" : "failed", card.name,
                 card.driver);
  }
  if (options.json)
    fmt::print("{}\n", json{{"form", db.form},
                            {"cards", cards.size()},
                            {"passed", db.fault.empty()}}
                           .dump(2));
  return 0;
}

} // namespace mgpu::tune

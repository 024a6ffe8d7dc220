// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The command line of `mgpu-tune db`.
#include "tools/mgpu-tune/DbCommand.h"

#include "db/FileSystem.h"
#include "tools/mgpu-tune/CommonOptions.h"

#include <fmt/format.h>
#include <memory>

namespace mgpu::tools {

void noteEarlierPlace(const std::string &database) {
  if (std::string better = db::betterDatabasePath(database); !better.empty())
    fmt::print(stderr,
               "mgpu-tune: note: the database lies in '{}', which cleaners of "
               "caches empty: move it to '{}'\n",
               *db::databasePath(database), better);
}

Result<db::TuningStore> openStore(const std::string &database,
                                  db::Access access, const std::string *site) {
  MGPU_TRY_ASSIGN(std::string path, db::databasePath(database));
  noteEarlierPlace(database);
  db::StoreOptions store;
  store.database.access = access;
  if (site)
    store.site = db::sitePath(*site);
  return db::TuningStore::open(path, store);
}

/// --db-site of commands that look results up.
static void addSite(CLI::App *command, std::string &site) {
  addValue(command, "--db-site", site, "FILE",
           "A read-only database to look in where the first has "
           "nothing; else MGPU_DB_SITE");
}

namespace {

/// The subcommands of `db`, which share one struct of options.
struct DbGroup {
  CommandLine &line;
  CLI::App *group;
  std::shared_ptr<DbOptions> db = std::make_shared<DbOptions>();

  CLI::App *add(const char *name, const char *help,
                Result<int> (*run)(const DbOptions &), bool withSite = false) {
    CLI::App *each = group->add_subcommand(name, help);
    addDatabase(each, db->database);
    if (withSite)
      addSite(each, db->site);
    addJson(each, db->json);
    onChosen(each, line, db, run);
    return each;
  }
  void addViews();
  void addTransfers();
  void addVariant();
  void addCare();
};

} // namespace

void DbGroup::addViews() {
  add("list", "List what was tuned: file, entry, date, target, times",
      runDbList, true)
      ->add_flag("--all", db->all,
                 "List every problem, those of single kernels too");

  CLI::App *show =
      add("show", "Show the trials of a problem, the fastest first", runDbShow,
          true);
  show->add_option("KEY", db->key, "The front of its key, as `db list` has it")
      ->required();
  takeWhole(show->add_option("--limit", db->limit,
                             "Trials to show as text; 0 for all")
                ->capture_default_str());

  CLI::App *explain =
      add("explain", "Say what a look-up finds, why, and what it may cost",
          runDbExplain, true);
  explain
      ->add_option("KEY", db->key,
                   "The front of a problem's key; the options below replace "
                   "parts of the problem")
      ->required();
  auto coordinate = [&](const char *name, std::optional<std::string> &into,
                        const char *help) {
    addValue(explain, name, into, "TEXT", help);
  };
  coordinate("--program", db->program, "What is tuned");
  coordinate("--shape", db->shape, "Sizes, as n=1024,type=f32");
  coordinate("--device", db->device, "The device's name");
  coordinate("--architecture", db->architecture, "sm_90, x86-64-v3, ...");
  coordinate("--driver", db->driver, "Versions of driver and toolkit");
  coordinate("--environment", db->environment, "Topology, clocks, threads");
  coordinate("--policy", db->policy, "How it is measured");
}

void DbGroup::addTransfers() {
  CLI::App *exported =
      add("export", "Write problems and trials as JSON lines", runDbExport);
  exported->add_option("KEY", db->keys,
                       "Fronts of the keys of the problems; else all");
  addValue(exported, "-o,--output", db->output, "FILE",
           "Write to FILE instead of the standard output");

  add("import", "Take in other databases, or what `db export` wrote",
      runDbImport)
      ->add_option("FILE", db->files,
                   "Databases, which are not changed, or files of "
                   "`db export`, also gzipped; - is the standard input")
      ->required();
}

void DbGroup::addVariant() {
  CLI::App *command =
      add("variant",
          "Say which variants have run on which GPU, and whether they gave the "
          "right bits; or store it (tests/gpu/run.sh)",
          runDbVariant);
  const std::string help = "What to store is of this variant";
  CLI::Option *name = command->add_option("NAME", help);
  takeWord(name, variantNames());
  name->each([db = db](const std::string &word) {
    if (auto named = variantNamed(word))
      db->variant = *named;
  });
  addValue(command, "--target", db->target, "TARGET", "The GPU: cuda:0, ...");
  takeNumber(addValue(command, "--replay-us", db->medianUs, "MICROSECONDS",
                      "The median time of its replays, whose bits "
                      "were right"),
             1e-3, 1e12);
  takeNumber(addValue(command, "--without-us", db->withoutUs, "MICROSECONDS",
                      "The same without it, where it is on by default only "
                      "where it is not slower (pdl)"),
             1e-3, 1e12);
  addValue(command, "--failed", db->fault, "TEXT", "What went wrong");
}

void DbGroup::addCare() {
  CLI::App *prune =
      add("prune", "Remove results, texts and cubins", runDbPrune);
  addValue(prune, "--older", db->older, "DAYS",
           "Remove configurations last tried more than DAYS (90d) ago, "
           "except winners and those that failed");
  addValue(prune, "--problem", db->keys, "KEY",
           "Remove this problem with all its trials");
  addValue(prune, "--blobs", db->blobs, "SIZE",
           "Remove the texts and cubins not used for longest until "
           "the rest fits in SIZE (256MiB)");

  add("verify", "Read the whole file and say what of it is sound", runDbVerify)
      ->add_option("FILE", db->files, "Databases; else that of --db");
}

void addDbCommand(CommandLine &line) {
  DbGroup commands{
      line, line.app.add_subcommand(
                "db", "List, explain, exchange and check what was measured")};
  commands.group->require_subcommand(1);
  commands.addViews();
  commands.addTransfers();
  commands.addVariant();
  commands.addCare();
}

} // namespace mgpu::tools

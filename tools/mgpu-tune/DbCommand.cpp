// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The command line of `mgpu-tune db`.
#include "tools/mgpu-tune/DbCommand.h"

#include "db/FileSystem.h"
#include "tools/mgpu-tune/OptionChecks.h"

#include <memory>

namespace mgpu::tune {

void addDatabase(CLI::App *command, Options &options, bool withSite) {
  command
      ->add_option("--db", options.database,
                   "The database; else MGPU_DB, else mgpu/mgpu.db in the "
                   "user's cache directory")
      ->type_name("FILE");
  if (withSite)
    command
        ->add_option("--db-site", options.site,
                     "A read-only database to look in where the first has "
                     "nothing; else MGPU_DB_SITE")
        ->type_name("FILE");
}

Result<db::TuningStore> openStore(const Options &options, db::Access access,
                                  bool withSite) {
  MGPU_TRY_ASSIGN(std::string path, db::databasePath(options.database));
  db::StoreOptions store;
  store.database.access = access;
  if (withSite)
    store.site = db::sitePath(options.site);
  return db::TuningStore::open(path, store);
}

using Run = Result<int> (*)(const Options &, const DbOptions &);

void addDbCommand(CLI::App &app, Options &options, Command &command) {
  auto db = std::make_shared<DbOptions>();
  CLI::App *group = app.add_subcommand(
      "db", "List, explain, exchange and check what was measured");
  group->require_subcommand(1);
  auto add = [&](const char *name, const char *help, Run run,
                 bool withSite = false) {
    CLI::App *each = group->add_subcommand(name, help);
    addDatabase(each, options, withSite);
    each->add_flag("--json", options.json, "Print the result as JSON");
    each->callback([&command, db, run] {
      command = [db, run](const Options &given) { return run(given, *db); };
    });
    return each;
  };

  add(
      "list", "List the problems: trials, failures, the winner",
      [](const Options &given, const DbOptions &) { return runDbList(given); },
      true);

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
    explain->add_option(name, into, help)->type_name("TEXT");
  };
  coordinate("--program", db->program, "What is tuned");
  coordinate("--shape", db->shape, "Sizes, as n=1024,type=f32");
  coordinate("--device", db->device, "The device's name");
  coordinate("--architecture", db->architecture, "sm_90, x86-64-v3, ...");
  coordinate("--driver", db->driver, "Versions of driver and toolkit");
  coordinate("--environment", db->environment, "Topology, clocks, threads");
  coordinate("--policy", db->policy, "How it is measured");

  CLI::App *exported =
      add("export", "Write problems and trials as JSON lines", runDbExport);
  exported->add_option("KEY", db->keys,
                       "Fronts of the keys of the problems; else all");
  exported
      ->add_option("-o,--output", db->output,
                   "Write to FILE instead of the standard output")
      ->type_name("FILE");

  add("import", "Take in what `db export` wrote", runDbImport)
      ->add_option("FILE", db->files,
                   "Files, also gzipped; - is the standard "
                   "input")
      ->required();

  CLI::App *form = add("form",
                       "Store that a form of --tensor-cores has run on a card "
                       "and gave the right bits, or did not (tests/gpu/run.sh)",
                       runDbForm);
  takeWord(form->add_option("FORM", db->form, "mma or wgmma")->required(),
           {"mma", "wgmma"});
  form->add_option("--target", options.target, "The card: cuda:0, ...")
      ->type_name("TARGET");
  takeNumber(form->add_option("--replay-us", db->medianUs,
                              "The median time of its replays, whose bits "
                              "were right")
                 ->type_name("MICROSECONDS"),
             1e-3, 1e12);
  form->add_option("--failed", db->fault, "What went wrong")->type_name("TEXT");

  CLI::App *merge =
      add("merge", "Take in the results of other databases", runDbMerge);
  merge->add_option("FILE", db->files, "Databases; they are not changed")
      ->required();
  merge->add_flag("--salvage", db->salvage,
                  "They may be damaged: take what is sound");

  CLI::App *prune =
      add("prune", "Remove results, texts and cubins", runDbPrune);
  prune
      ->add_option("--older", db->older,
                   "Remove configurations last tried more than DAYS (90d) ago, "
                   "except winners and those that failed")
      ->type_name("DAYS");
  prune
      ->add_option("--problem", db->keys,
                   "Remove this problem with all its trials; may be repeated")
      ->type_name("KEY");
  prune
      ->add_option("--blobs", db->blobs,
                   "Remove the texts and cubins not used for longest until "
                   "the rest fits in SIZE (256MiB)")
      ->type_name("SIZE");

  add("verify", "Read the whole file and say what of it is sound", runDbVerify)
      ->add_option("FILE", db->files, "Databases; else that of --db");
}

} // namespace mgpu::tune

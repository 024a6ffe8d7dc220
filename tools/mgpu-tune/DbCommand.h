// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_DBCOMMAND_H
#define MGPU_TOOLS_MGPU_TUNE_DBCOMMAND_H

// `mgpu-tune db ...` and the options of all commands that use the database.

#include "db/TuningStore.h"
#include "tools/mgpu-tune/Options.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace mgpu::tune {

/// --db and, for commands that look results up, --db-site.
void addDatabase(CLI::App *command, Options &options, bool withSite);

/// The file --db names, over that of --db-site if `withSite`.
Result<db::TuningStore> openStore(const Options &options, db::Access access,
                                  bool withSite);

using Command = std::function<Result<int>(const Options &)>;
/// Adds `db` with its subcommands, which set `command` when they are chosen.
void addDbCommand(CLI::App &app, Options &options, Command &command);

/// What the subcommands of `db` take beside Options.
struct DbOptions {
  std::string key;               ///< show, explain
  std::vector<std::string> keys; ///< export; prune --problem
  std::vector<std::string> files;
  std::string output; ///< export -o
  uint64_t limit = 20;
  bool salvage = false;
  std::string older, blobs; ///< prune
  std::string form, fault;  ///< form
  double medianUs = 0;      ///< form
  /// explain: coordinates that replace those of the problem `key`.
  std::optional<std::string> program, shape, device, architecture, driver,
      environment, policy;
};

Result<int> runDbList(const Options &options);
Result<int> runDbShow(const Options &options, const DbOptions &db);
Result<int> runDbExplain(const Options &options, const DbOptions &db);
Result<int> runDbForm(const Options &options, const DbOptions &db);
Result<int> runDbExport(const Options &options, const DbOptions &db);
Result<int> runDbImport(const Options &options, const DbOptions &db);
Result<int> runDbMerge(const Options &options, const DbOptions &db);
Result<int> runDbPrune(const Options &options, const DbOptions &db);
Result<int> runDbVerify(const Options &options, const DbOptions &db);

} // namespace mgpu::tune

#endif // MGPU_TOOLS_MGPU_TUNE_DBCOMMAND_H

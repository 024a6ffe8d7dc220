// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_DBCOMMAND_H
#define MGPU_TOOLS_MGPU_TUNE_DBCOMMAND_H

// `mgpu-tune db ...` and the options of all commands that use the database.

#include "db/TuningStore.h"
#include "pipeline/program/Variants.h"
#include "tools/mgpu-tune/CommandLine.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace mgpu::tools {

/// Says where the user's database had better be, where it is elsewhere.
void noteEarlierPlace(const std::string &database);

/// The file that --db names, over that of --db-site if `site` is not null.
Result<db::TuningStore> openStore(const std::string &database,
                                  db::Access access,
                                  const std::string *site = nullptr);

/// The options of the subcommands of `db`.
struct DbOptions {
  std::string database, site; ///< --db, --db-site
  bool json = false;
  bool all = false;              ///< list: kernels and profiles, too
  std::string target;            ///< variant
  std::string key;               ///< show, explain
  std::vector<std::string> keys; ///< export; prune --problem
  std::vector<std::string> files;
  std::string output; ///< export -o
  uint64_t limit = 20;
  std::string older, blobs;                 ///< prune
  std::optional<pipeline::Variant> variant; ///< variant, as what follows
  std::string fault;
  double medianUs = 0, withoutUs = 0;
  /// explain: coordinates that replace those of the problem `key`.
  std::optional<std::string> program, shape, device, architecture, driver,
      environment, policy;
};

Result<int> runDbList(const DbOptions &options);
Result<int> runDbShow(const DbOptions &options);
Result<int> runDbExplain(const DbOptions &options);
Result<int> runDbVariant(const DbOptions &options);
Result<int> runDbExport(const DbOptions &options);
Result<int> runDbImport(const DbOptions &options);
Result<int> runDbPrune(const DbOptions &options);
Result<int> runDbVerify(const DbOptions &options);

} // namespace mgpu::tools

#endif // MGPU_TOOLS_MGPU_TUNE_DBCOMMAND_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/FileUses.h"

#include "db/FileSystem.h"
#include "support/ArgumentValue.h"
#include "support/FileNames.h"
#include "tools/mgpu-tune/Program.h"

#include <fmt/format.h>

namespace mgpu::tune {

void FileUses::read(const std::string &who, const std::string &path) {
  if (path.empty() || path == "-")
    return;
  if (std::string identity = fileIdentity(path); !identity.empty())
    readers.emplace(std::move(identity), who);
}

void FileUses::readDatabase(const std::string &who, const std::string &path) {
  for (const char *ending : {"", "-wal", "-shm", "-journal"})
    if (!path.empty())
      read(who, path + ending);
}

Result<void> FileUses::write(const std::string &who, const std::string &path) {
  if (path.empty())
    return {};
  MGPU_TRY(checkOutputPath(path));
  const std::string identity = fileIdentity(path);
  if (identity.empty()) // a device or a pipe
    return {};
  if (auto reader = readers.find(identity); reader != readers.end())
    return fail(ErrorKind::Usage,
                fmt::format("{} would replace '{}', which {} reads: name "
                            "another file",
                            who, path, reader->second));
  auto [other, isNew] = writers.emplace(identity, who);
  if (!isNew)
    return fail(ErrorKind::Usage,
                fmt::format("{} and {} both write '{}': name two files",
                            other->second, who, path));
  return {};
}

FileUses filesRead(const Options &options) {
  FileUses uses;
  uses.read("FILE", options.file);
  if (!options.writesPlan)
    uses.read("--plan", options.planFile);
  uses.read("--collectives", options.collectivesFile);
  if (options.target.starts_with("sim:"))
    uses.read("--target", options.target.substr(4));
  for (const auto &[key, value] : options.arguments)
    uses.read("--arg " + key, argumentFile(value));
  if (auto path = db::databasePath(options.database))
    uses.readDatabase(options.database.empty() ? "the database" : "--db",
                      *path);
  uses.readDatabase("--db-site", db::sitePath(options.site));
  return uses;
}

Result<void> checkFiles(const Options &options) {
  FileUses uses = filesRead(options);
  for (const auto &[key, file] : options.outputs)
    MGPU_TRY(uses.write("--out " + key, file));
  MGPU_TRY(uses.write("--trace", options.traceFile));
  MGPU_TRY(uses.write("--dot", options.dotFile));
  MGPU_TRY(uses.write("--svg", options.svgFile));
  if (options.writesPlan)
    MGPU_TRY(uses.write("-o", options.planFile));
  for (const std::string *file :
       {&options.bundleFile, &options.calibrationFile, &options.reportFile})
    MGPU_TRY(uses.write("-o", *file));
  return {};
}

} // namespace mgpu::tune

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/FileUses.h"

#include "db/FileSystem.h"
#include "support/ArgumentValue.h"
#include "support/FileNames.h"

#include <fmt/format.h>

namespace mgpu::tools {

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

FileUses
filesRead(const LoadOptions &load,
          const std::vector<std::pair<std::string, std::string>> &others) {
  FileUses uses;
  uses.read("FILE", load.file);
  for (const auto &[who, path] : others)
    uses.read(who, path);
  if (load.target.starts_with("sim:"))
    uses.read("--target", load.target.substr(4));
  for (const auto &[key, value] : load.arguments)
    uses.read("--arg " + key, argumentFile(value));
  if (auto path = db::databasePath(load.database))
    uses.readDatabase(load.database.empty() ? "the database" : "--db", *path);
  uses.readDatabase("--db-site", db::sitePath(""));
  return uses;
}

} // namespace mgpu::tools

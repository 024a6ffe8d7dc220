// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_FILEUSES_H
#define MGPU_TOOLS_MGPU_TUNE_FILEUSES_H

// Nothing that a command writes may take the place of a file that the same
// command line names for something else.

#include "tools/mgpu-tune/Options.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace mgpu::tools {

/// Files by what they are (support/FileNames.h) and who names them.
class FileUses {
public:
  /// Says that `who` ("--arg x") reads a file; "" and "-" are not files.
  void read(const std::string &who, const std::string &path);
  /// The database and what SQLite keeps beside it.
  void readDatabase(const std::string &who, const std::string &path);
  /// Says that `who` writes a file; to be called after the reads and before the
  /// work. Usage where no file can be put at `path` (checkOutputPath()), or
  /// another reads or writes it. An empty path writes nothing.
  Result<void> write(const std::string &who, const std::string &path);

private:
  std::map<std::string, std::string> readers, writers; ///< by identity
};

/// The files that loading a program reads, with further ones by who names them
/// ("--plan"), and the databases of any command but `db`.
FileUses
filesRead(const LoadOptions &load,
          const std::vector<std::pair<std::string, std::string>> &others = {});

} // namespace mgpu::tools

#endif // MGPU_TOOLS_MGPU_TUNE_FILEUSES_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_FILEUSES_H
#define MGPU_TOOLS_MGPU_TUNE_FILEUSES_H

// Nothing that a command writes may take the place of a file that the same
// command line names for something else.

#include "tools/mgpu-tune/Options.h"

#include <map>
#include <string>

namespace mgpu::tune {

/// Files by what they are (support/FileNames.h) and who names them.
class FileUses {
public:
  /// Of what `who` ("--arg x") reads; "" and "-" are no files.
  void read(const std::string &who, const std::string &path);
  /// The database and what SQLite keeps beside it.
  void readDatabase(const std::string &who, const std::string &path);
  /// Usage where a file cannot be put at `path` (checkOutputPath()), or another
  /// reads or writes that file; to be called after the reads.
  Result<void> write(const std::string &who, const std::string &path);

private:
  std::map<std::string, std::string> readers, writers; ///< by identity
};

/// What the options of any command but `db` read.
FileUses filesRead(const Options &options);

/// write() of all that the options of any command but `db` have written to one
/// file; to be called before the work.
Result<void> checkFiles(const Options &options);

} // namespace mgpu::tune

#endif // MGPU_TOOLS_MGPU_TUNE_FILEUSES_H

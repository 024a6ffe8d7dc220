// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_FILENAMES_H
#define MGPU_SUPPORT_FILENAMES_H

// Which file a path means: several paths may name one file, and a file that is
// not there yet has a name all the same.

#include "support/Result.h"

#include <string>

namespace mgpu {

/// The path that writing to `path` makes or replaces: what the symbolic links
/// at its end lead to, be it there or not. `path` itself where it is not a
/// link, or where the links end nowhere (a circle).
std::string followLinks(const std::string &path);

/// Equal for two paths exactly where a write to one of them would change what
/// the other reads. A regular file has its device and inode, one that is not
/// there its canonical path. Empty for folders, devices and pipes, which a
/// write replaces nothing of, and for what no file can be made at.
std::string fileIdentity(const std::string &path);

/// Whether a file can be put at `path`. To be asked before the work whose
/// result it is to hold. Usage if there is no such folder, or it takes no file.
Result<void> checkOutputPath(const std::string &path);

/// Usage where `path` is not a file that can be read. The readers of programs
/// call what they cannot read a fault of the program; a missing file is a fault
/// of the command line.
Result<void> checkReadable(const std::string &path);

} // namespace mgpu

#endif // MGPU_SUPPORT_FILENAMES_H

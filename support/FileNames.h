// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_FILENAMES_H
#define MGPU_SUPPORT_FILENAMES_H

// Which file a path means: several paths may name one file, and a file that is
// not there yet has a name all the same.

#include <string>

namespace mgpu {

/// The path that writing to `path` makes or replaces: what the symbolic links
/// at its end lead to, be it there or not. `path` itself where it is no link,
/// or where the links end nowhere (a circle).
std::string followLinks(const std::string &path);

/// Equal for two paths exactly where a write to one of them would change what
/// the other reads: of a regular file its device and inode, of one that is not
/// there its canonical path. Empty for folders, devices and pipes, which a
/// write replaces nothing of, and for what no file can be made at.
std::string fileIdentity(const std::string &path);

} // namespace mgpu

#endif // MGPU_SUPPORT_FILENAMES_H

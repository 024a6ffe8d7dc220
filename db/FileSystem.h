// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DB_FILESYSTEM_H
#define MGPU_DB_FILESYSTEM_H

// Which file systems are shared between machines, and where the user's own
// file lies.

#include "support/Result.h"

#include <cstdint>
#include <string>

namespace mgpu::db {

/// Whether statfs(2)'s `f_type` is one of a file system that other machines may
/// write to as well, or that cannot be told from one (FUSE, overlays of them):
/// NFS, SMB and CIFS, AFS, Coda, Ceph, Lustre, GPFS, BeeGFS, GFS2, OCFS2, 9p,
/// FUSE. Numbers: linux/magic.h, statfs(2), and the projects' own headers.
bool isNetworkFileSystem(uint64_t type);

/// Of the file `path`, or of the folder it would lie in. False where the
/// system does not say.
bool liesOnNetwork(const std::string &path);

/// `chosen` (--db) if it is not empty, else MGPU_DB, else
/// XDG_CACHE_HOME/mgpu/mgpu.db, else ~/.cache/mgpu/mgpu.db. Usage where none
/// of them is known.
Result<std::string> databasePath(const std::string &chosen);

/// Where databasePath() is with neither --db nor MGPU_DB; "" where that is not
/// known.
std::string defaultDatabasePath();

/// `chosen` (--site) if it is not empty, else MGPU_DB_SITE, else "".
std::string sitePath(const std::string &chosen);

} // namespace mgpu::db

#endif // MGPU_DB_FILESYSTEM_H

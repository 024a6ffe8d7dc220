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

/// Whether the file `path`, or the folder it would lie in, is on a network file
/// system. False where the system does not say.
bool liesOnNetwork(const std::string &path);

/// `chosen` (--db) if it is not empty, else MGPU_DB, else
/// XDG_STATE_HOME/mgpu/mgpu.db, else ~/.local/state/mgpu/mgpu.db. Where that is
/// not there and the place of earlier versions is, XDG_CACHE_HOME or ~/.cache,
/// that one. Usage where none of them is known.
Result<std::string> databasePath(const std::string &chosen);

/// Where a file that databasePath() found in the place of earlier versions had
/// better be; "" where it found none there.
std::string betterDatabasePath(const std::string &chosen);

/// Where databasePath() is with neither --db nor MGPU_DB; "" where that is not
/// known.
std::string defaultDatabasePath();

/// `chosen` (--site) if it is not empty, else MGPU_DB_SITE, else "".
std::string sitePath(const std::string &chosen);

} // namespace mgpu::db

#endif // MGPU_DB_FILESYSTEM_H

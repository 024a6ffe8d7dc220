// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "db/FileSystem.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sys/vfs.h>

namespace mgpu::db {

bool isNetworkFileSystem(uint64_t type) {
  static constexpr uint64_t magics[] = {
      0x6969,     // NFS
      0x517b,     // SMB
      0xfe534d42, // SMB2
      0xff534d42, // CIFS
      0x5346414f, // AFS
      0x6b414653, // kAFS
      0x73757245, // Coda
      0x00c36400, // Ceph
      0x0bd00bd0, // Lustre
      0x47504653, // GPFS
      0x19830326, // BeeGFS
      0x01161970, // GFS2
      0x7461636f, // OCFS2
      0x01021997, // 9p
      0x65735546, // FUSE
      0xbacbacbc, // VMware's shared folders
      0x786f4256, // VirtualBox's shared folders
      0x20030528, // OrangeFS
      0xaad7aaea, // PanFS
  };
  // f_type is signed, and 32 bits wide on some machines.
  return std::find(std::begin(magics), std::end(magics), type & 0xffffffff) !=
         std::end(magics);
}

bool liesOnNetwork(const std::string &path) {
  struct statfs status {};
  if (::statfs(path.c_str(), &status) != 0) {
    std::filesystem::path folder = std::filesystem::path(path).parent_path();
    if (::statfs(folder.empty() ? "." : folder.c_str(), &status) != 0)
      return false;
  }
  return isNetworkFileSystem(uint64_t(status.f_type));
}

static std::string environment(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

/// mgpu/mgpu.db in the folder that `variable` names, else in `folder` of the
/// user's home; "" where neither is known.
static std::string inFolder(const char *variable, const char *folder) {
  // The XDG specification says that a relative path is to be ignored.
  if (std::string named = environment(variable); named.starts_with('/'))
    return named + "/mgpu/mgpu.db";
  std::string home = environment("HOME");
  return home.empty() ? home : home + folder + "/mgpu/mgpu.db";
}

std::string defaultDatabasePath() {
  const std::string path = inFolder("XDG_STATE_HOME", "/.local/state");
  const std::string earlier = inFolder("XDG_CACHE_HOME", "/.cache");
  std::error_code none;
  return !std::filesystem::exists(path, none) &&
                 std::filesystem::exists(earlier, none)
             ? earlier
             : path;
}

std::string betterDatabasePath(const std::string &chosen) {
  auto used = databasePath(chosen);
  const std::string path = inFolder("XDG_STATE_HOME", "/.local/state");
  return chosen.empty() && environment("MGPU_DB").empty() && used &&
                 *used != path
             ? path
             : "";
}

Result<std::string> databasePath(const std::string &chosen) {
  if (!chosen.empty())
    return chosen;
  if (std::string named = environment("MGPU_DB"); !named.empty())
    return named;
  if (std::string path = defaultDatabasePath(); !path.empty())
    return path;
  return fail(ErrorKind::Usage,
              "neither HOME nor XDG_STATE_HOME says where the "
              "database is to lie: name it with --db FILE");
}

std::string sitePath(const std::string &chosen) {
  return chosen.empty() ? environment("MGPU_DB_SITE") : chosen;
}

} // namespace mgpu::db

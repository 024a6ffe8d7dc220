// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_COMPILE_KERNELCACHE_H
#define MGPU_KERNELS_COMPILE_KERNELCACHE_H

// Kernels that were compiled for the host, between runs: one file each in a
// folder of the user's caches, apart from the database, which only commands
// that store something create.

#include "device/api/BlobCache.h"
#include "kernels/compile/CudaText.h"
#include "planner/dag/LaunchFacts.h"

#include <atomic>
#include <cstdint>
#include <map>

namespace mgpu::kernels {

/// Holds no file open, so that it may be used in processes that were forked,
/// and by many at once. A file is written whole or not at all, says what its
/// contents hash to, and is a miss where it is not the user's own.
class KernelCache final : public device::BlobCache {
public:
  /// Beyond `limitBytes`, what was not used for longest goes first. The folder
  /// is made when something is stored.
  explicit KernelCache(std::string folder, uint64_t limitBytes = 256 << 20)
      : folder(std::move(folder)), limitBytes(limitBytes) {}

  std::optional<device::Blob> find(const std::string &key) override;
  void store(const std::string &key, const device::Blob &value) override;

private:
  void evict() const;

  std::string folder;
  uint64_t limitBytes;
  /// Bytes stored since the folder was last looked through.
  std::atomic<uint64_t> unseen = UINT64_MAX / 2;
};

/// The folder that MGPU_KERNEL_CACHE names, else mgpu/kernels in XDG_CACHE_HOME
/// or ~/.cache. Null where it says "off", or none of them is set.
KernelCache *userKernelCache();

// Emitted texts between runs, so that a program whose cubins are kept is not
// emitted again to find their keys. An entry holds the texts of some kernels of
// a program together; its key is made of all that decides them.

/// The maker of texts, and all that decides them beside the kernels themselves.
struct TextMaker {
  /// Names the code that emits the texts, and what it is linked to (emitterId
  /// of kernels/cuda): another build may emit other texts. Empty: nothing is
  /// kept.
  std::string build;
  std::string options; ///< how the texts are emitted
};

class TextCache {
public:
  /// `cache` may be null: then nothing is found, and nothing stored.
  TextCache(device::BlobCache *cache, TextMaker maker)
      : cache(cache), maker(std::move(maker)) {}

  /// The key of the texts of `kernels`, of whose launches `facts` hold.
  /// Besides these it is made of the files that the kernels' locations name,
  /// whose names of values the texts show. Empty where texts are not kept.
  std::string keyOf(std::span<const planner::KernelSpec> kernels,
                    std::span<const planner::LaunchFacts> facts);

  /// The texts under `key`, one for each of `kernels`. None if there is no such
  /// entry, or it is not what was stored under this key for them.
  std::optional<std::vector<CudaText>>
  find(const std::string &key, std::span<const planner::KernelSpec> kernels);

  /// Keeps what was emitted after keyOf() gave `key`, unless a file has changed
  /// since then: the texts may be of the new one.
  void store(const std::string &key,
             std::span<const planner::KernelSpec> kernels,
             std::span<const planner::LaunchFacts> facts,
             std::span<const CudaText> texts);

private:
  /// SHA-256 of a regular file's contents; "absent" where there is none of
  /// that name, and empty of anything else.
  const std::string &hashOfFile(const std::string &path);

  device::BlobCache *cache;
  TextMaker maker;
  std::map<std::string, std::string> files; ///< hashes by path
};

/// The files that locations in the text of a module name. None where a name
/// is written with escapes.
std::optional<std::vector<std::string>> filesNamedIn(std::string_view module);

/// An entry, which repeats its key.
device::Blob packTexts(const std::string &key, std::span<const CudaText> texts);
/// None of what packTexts() did not write under this key.
std::optional<std::vector<CudaText>> unpackTexts(const std::string &key,
                                                 const device::Blob &blob);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_COMPILE_KERNELCACHE_H

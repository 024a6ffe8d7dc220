// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/replay/SharedBytes.h"

#include "support/WordHash.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace mgpu::capture {

namespace {

size_t pageBytes() {
  static const auto bytes = size_t(sysconf(_SC_PAGESIZE));
  return bytes;
}

/// All that live, by their hash and size.
struct Table {
  std::mutex lock;
  std::multimap<std::pair<uint64_t, size_t>, std::weak_ptr<const SharedBytes>>
      entries;
};
/// It is never destroyed: programs may end after it would be.
Table &table() {
  static auto *const theTable = new Table;
  return *theTable;
}

size_t mappedBytes(size_t size) {
  return (size + pageBytes() - 1) / pageBytes() * pageBytes() + pageBytes();
}

} // namespace

std::shared_ptr<const SharedBytes>
SharedBytes::of(std::span<const std::byte> bytes) {
  WordHash hash;
  hash.add(bytes.data(), bytes.size());
  const std::pair key(hash.value(), bytes.size());
  const std::lock_guard guard(table().lock);
  auto &entries = table().entries;
  std::erase_if(entries,
                [](const auto &entry) { return entry.second.expired(); });
  for (auto [at, end] = entries.equal_range(key); at != end; ++at)
    if (auto found = at->second.lock();
        found && std::memcmp(found->memory, bytes.data(), bytes.size()) == 0)
      return found;
  void *memory =
      ::mmap(nullptr, mappedBytes(bytes.size()), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return nullptr;
  std::shared_ptr<const SharedBytes> made(
      new SharedBytes(static_cast<std::byte *>(memory), bytes.size()));
  std::memcpy(made->memory, bytes.data(), bytes.size());
  ::mprotect(memory, mappedBytes(bytes.size()), PROT_READ);
  entries.emplace(key, made);
  return made;
}

SharedBytes::~SharedBytes() { ::munmap(memory, mappedBytes(size)); }

void releasePages(std::span<std::byte> memory) {
  const uintptr_t page = pageBytes(), begin = uintptr_t(memory.data());
  const uintptr_t first = (begin + page - 1) / page * page,
                  last = (begin + memory.size()) / page * page;
  if (first < last)
    ::madvise(reinterpret_cast<void *>(first), last - first, MADV_DONTNEED);
}

} // namespace mgpu::capture

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "db/PageScan.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>

namespace mgpu::db {
namespace {

using Bytes = std::span<const std::byte>;

/// Reads big-endian numbers; all that is beyond the end is a fault.
class Reader {
public:
  explicit Reader(Bytes bytes) : bytes(bytes) {}

  uint64_t fixed(size_t width) {
    if (bytes.size() < width) {
      failed = true;
      return 0;
    }
    uint64_t value = 0;
    for (size_t k = 0; k < width; ++k)
      value = value << 8 | uint64_t(bytes[k]);
    bytes = bytes.subspan(width);
    return value;
  }
  /// SQLite's: seven bits a byte, the ninth byte whole.
  uint64_t varint() {
    uint64_t value = 0;
    for (int k = 0; k < 9; ++k) {
      uint64_t byte = fixed(1);
      if (k == 8)
        return value << 8 | byte;
      value = value << 7 | (byte & 0x7f);
      if (byte < 0x80)
        break;
    }
    return value;
  }
  Bytes take(uint64_t size) {
    if (bytes.size() < size) {
      failed = true;
      return {};
    }
    Bytes front = bytes.first(size);
    bytes = bytes.subspan(size);
    return front;
  }
  size_t left() const { return bytes.size(); }
  bool ok() const { return !failed; }

private:
  Bytes bytes;
  bool failed = false;
};

int64_t signedOf(uint64_t value, size_t width) {
  int shift = int(64 - 8 * width);
  return int64_t(value << shift) >> shift;
}

Value valueOf(uint64_t type, Reader &body) {
  static constexpr size_t widths[] = {0, 1, 2, 3, 4, 6, 8};
  if (type == 0)
    return {};
  if (type <= 6)
    return signedOf(body.fixed(widths[type]), widths[type]);
  if (type == 7)
    return std::bit_cast<double>(body.fixed(8));
  if (type <= 9)
    return int64_t(type - 8);
  Bytes bytes = body.take((type - 12) / 2);
  return std::string(reinterpret_cast<const char *>(bytes.data()),
                     bytes.size());
}

std::optional<Record> recordOf(int64_t rowId, Bytes payload) {
  Reader size(payload);
  uint64_t headerSize = size.varint();
  size_t used = payload.size() - size.left();
  if (!size.ok() || headerSize < used || headerSize > payload.size())
    return std::nullopt;
  Reader header(payload.subspan(used, headerSize - used));
  Reader body(payload.subspan(headerSize));
  Record record{rowId, {}};
  while (header.left() > 0) {
    uint64_t type = header.varint();
    if (type == 10 || type == 11)
      return std::nullopt;
    record.columns.push_back(valueOf(type, body));
    if (!header.ok() || !body.ok())
      return std::nullopt;
  }
  return record;
}

/// The pages of one state of the file; those of the log come first.
class Pages {
public:
  Pages(Bytes file, size_t size) : file(file), size(size) {}

  Bytes find(uint64_t number) const {
    if (auto at = logged.find(number); at != logged.end())
      return at->second;
    if (number == 0 || number > file.size() / size)
      return {};
    return file.subspan((number - 1) * size, size);
  }

  Bytes file;
  size_t size;
  std::map<uint64_t, Bytes> logged;
};

/// The payload of the cell at `cell`, gathered over its overflow pages.
std::optional<Record> readCell(const Pages &pages, Bytes cell) {
  Reader reader(cell);
  uint64_t total = reader.varint();
  int64_t rowId = int64_t(reader.varint());
  size_t usable = pages.size;
  size_t most = usable - 35, least = (usable - 12) * 32 / 255 - 23;
  uint64_t local = total;
  if (total > most) {
    local = least + (total - least) % (usable - 4);
    if (local > most)
      local = least;
  }
  if (!reader.ok() || total > pages.file.size() + (uint64_t(1) << 30))
    return std::nullopt;
  Bytes front = reader.take(local);
  if (total == local)
    return reader.ok() ? recordOf(rowId, front) : std::nullopt;
  std::vector<std::byte> payload(front.begin(), front.end());
  uint64_t next = reader.fixed(4);
  std::set<uint64_t> seen;
  while (reader.ok() && payload.size() < total) {
    Bytes page = pages.find(next);
    if (page.empty() || !seen.insert(next).second)
      return std::nullopt;
    next = Reader(page).fixed(4);
    Bytes data = page.subspan(4);
    data = data.first(std::min<uint64_t>(data.size(), total - payload.size()));
    payload.insert(payload.end(), data.begin(), data.end());
  }
  return reader.ok() ? recordOf(rowId, payload) : std::nullopt;
}

void scanPage(const Pages &pages, Bytes page, size_t start,
              const std::function<void(const Record &)> &visit) {
  Reader header(page.subspan(start));
  constexpr uint64_t tableLeaf = 0x0d;
  if (header.fixed(1) != tableLeaf)
    return;
  header.fixed(2);
  uint64_t cells = header.fixed(2);
  header.fixed(3);
  for (uint64_t k = 0; k < cells && header.left() >= 2; ++k) {
    uint64_t at = header.fixed(2);
    if (at < page.size())
      if (auto record = readCell(pages, page.subspan(at)))
        visit(*record);
  }
}

bool isPageSize(uint64_t size) {
  return size >= 512 && size <= 65536 && std::has_single_bit(size);
}

} // namespace

void scanPages(Bytes file, Bytes wal,
               const std::function<void(const Record &)> &visit) {
  // What SQLite has used by itself since 3.12, should the header be wrong.
  std::set<uint64_t> sizes{4096};
  Reader header(file.size() >= 100 ? file.subspan(16) : Bytes());
  uint64_t stated = header.fixed(2);
  if (stated == 1)
    stated = 65536;
  if (isPageSize(stated))
    sizes.insert(stated);
  for (uint64_t size : sizes) {
    Pages main(file, size), both(file, size);
    std::vector<std::pair<uint64_t, Bytes>> frames;
    constexpr size_t logHeader = 32, frameHeader = 24;
    for (size_t at = logHeader; at + frameHeader + size <= wal.size();
         at += frameHeader + size) {
      uint64_t number = Reader(wal.subspan(at)).fixed(4);
      frames.emplace_back(number, wal.subspan(at + frameHeader, size));
      both.logged[number] = frames.back().second;
    }
    auto scan = [&](uint64_t number, Bytes page) {
      size_t start = number == 1 ? 100 : 0;
      scanPage(both, page, start, visit);
      if (!frames.empty())
        scanPage(main, page, start, visit);
    };
    for (uint64_t number = 1; number <= file.size() / size; ++number)
      scan(number, file.subspan((number - 1) * size, size));
    for (auto [number, page] : frames)
      scan(number, page);
  }
}

} // namespace mgpu::db

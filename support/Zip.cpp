// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Zip.h"

#include "support/Escape.h"

#include <algorithm>
#include <climits>
#include <fmt/format.h>
#include <zlib.h>

namespace mgpu {

namespace {

constexpr uint32_t localMark = 0x04034b50, entryMark = 0x02014b50,
                   endMark = 0x06054b50, end64Mark = 0x06064b50,
                   locatorMark = 0x07064b50;
constexpr uint64_t localBytes = 30, entryBytes = 46, endBytes = 22,
                   locatorBytes = 20, end64Bytes = 56;
/// The comment after the end record has 16 bits of length.
constexpr uint64_t mostTail = endBytes + 65535 + locatorBytes;
constexpr uint64_t mostDirectory = uint64_t(256) << 20;
/// DEFLATE makes at most 1,032 bytes of one.
constexpr uint64_t mostInflation = 1032;

/// Little-endian fields of a record, whose size was checked.
uint64_t field(const std::byte *at, int bytes) {
  uint64_t value = 0;
  for (int k = bytes - 1; k >= 0; --k)
    value = value << 8 | uint64_t(at[k]);
  return value;
}

/// Takes 64 bits of the extra field of zip64 for each size that says so.
bool takeZip64(const std::byte *extra, uint64_t bytes,
               std::initializer_list<uint64_t *> sizes) {
  const std::byte *end = extra + bytes;
  for (const std::byte *at = extra; end - at >= 4;) {
    const uint64_t length = field(at + 2, 2);
    if (length > uint64_t(end - at - 4))
      return false;
    if (field(at, 2) == 1) {
      const std::byte *value = at + 4, *last = value + length;
      for (uint64_t *size : sizes) {
        if (*size != 0xffffffff)
          continue;
        if (last - value < 8)
          return false;
        *size = field(value, 8);
        value += 8;
      }
      return true;
    }
    at += 4 + length;
  }
  return std::ranges::none_of(
      sizes, [](uint64_t *size) { return *size == 0xffffffff; });
}

/// Raw DEFLATE to exactly out.size() bytes.
bool inflateAll(std::span<const std::byte> data, std::span<std::byte> out) {
  z_stream stream{};
  if (inflateInit2(&stream, -15) != Z_OK)
    return false;
  int status = Z_OK;
  size_t taken = 0, made = 0;
  std::byte spare{}; // shows that there is more than the entry says
  while (status == Z_OK) {
    if (stream.avail_in == 0) {
      const size_t count = std::min<size_t>(data.size() - taken, UINT_MAX);
      stream.next_in = reinterpret_cast<Bytef *>(
          const_cast<std::byte *>(data.data() + taken));
      stream.avail_in = uInt(count);
      taken += count;
    }
    const size_t room = std::min<size_t>(out.size() - made, UINT_MAX);
    const size_t given = room ? room : 1;
    stream.next_out =
        reinterpret_cast<Bytef *>(room ? out.data() + made : &spare);
    stream.avail_out = uInt(given);
    status = inflate(&stream, Z_NO_FLUSH);
    if (room == 0 && stream.avail_out == 0)
      status = Z_DATA_ERROR;
    else
      made += room ? given - stream.avail_out : 0;
  }
  inflateEnd(&stream);
  return status == Z_STREAM_END && made == out.size();
}

uint32_t crcOf(std::span<const std::byte> data) {
  uLong crc = crc32(0, nullptr, 0);
  for (size_t at = 0; at < data.size();) {
    const size_t count = std::min<size_t>(data.size() - at, UINT_MAX);
    crc = crc32(crc, reinterpret_cast<const Bytef *>(data.data() + at),
                uInt(count));
    at += count;
  }
  return uint32_t(crc);
}

} // namespace

bool isZipFile(const std::string &path) {
  auto begin = fileSize(path).and_then(
      [&](uint64_t size) { return readFileRange(path, 0, size < 4 ? 0 : 4); });
  return begin && begin->size() == 4 && field(begin->data(), 4) == localMark;
}

tl::unexpected<Error> ZipFile::broken(const std::string &what) const {
  return fail(ErrorKind::Invalid,
              fmt::format("'{}' is not a valid zip archive: {}", path(), what));
}

Result<ZipFile> ZipFile::open(const std::string &path) {
  ZipFile zip;
  MGPU_TRY_ASSIGN(zip.file, MappedFile::open(path));
  MGPU_TRY(zip.readDirectory());
  return zip;
}

Result<void> ZipFile::readDirectory() {
  const uint64_t fileBytes = file->bytes().size(),
                 tailBytes = std::min(fileBytes, mostTail);
  const std::vector<std::byte> tail = copyOf(fileBytes - tailBytes, tailBytes);
  uint64_t at = tailBytes;
  auto isEnd = [&](uint64_t from) {
    return field(&tail[from], 4) == endMark &&
           from + endBytes + field(&tail[from + 20], 2) == tailBytes;
  };
  if (at >= endBytes)
    for (at -= endBytes; at > 0 && !isEnd(at);)
      --at;
  if (tailBytes < endBytes || !isEnd(at))
    return broken("it has no directory at its end (is it cut?)");
  const std::byte *end = &tail[at];
  uint64_t count = field(end + 10, 2), bytes = field(end + 12, 4),
           begin = field(end + 16, 4), last = fileBytes - tailBytes + at;
  if (field(end + 4, 2) != 0 || field(end + 6, 2) != 0)
    return fail(ErrorKind::Unsupported,
                fmt::format("'{}' is a part of an archive of several files: "
                            "join them first",
                            path()));
  if (at >= locatorBytes && field(end - locatorBytes, 4) == locatorMark) {
    const uint64_t where = field(end - locatorBytes + 8, 8);
    if (where > last || last - where < end64Bytes + locatorBytes)
      return broken("its zip64 directory lies outside of it");
    const std::vector<std::byte> wide = copyOf(where, end64Bytes);
    if (field(wide.data(), 4) != end64Mark)
      return broken("it has no zip64 directory where it says");
    count = field(&wide[32], 8), bytes = field(&wide[40], 8),
    begin = field(&wide[48], 8), last = where;
  }
  if (begin > last || bytes > last - begin)
    return broken("its directory lies outside of it");
  if (bytes > mostDirectory)
    return broken("its directory has more than 256 MiB");
  return addEntries(copyOf(begin, bytes), count, begin);
}

Result<void> ZipFile::addEntries(const std::vector<std::byte> &directory,
                                 uint64_t count, uint64_t end) {
  size_t at = 0;
  std::vector<std::pair<uint64_t, uint64_t>> places;
  for (uint64_t k = 0; k < count; ++k) {
    const uint64_t left = directory.size() - at;
    const std::byte *record = directory.data() + at;
    if (left < entryBytes || field(record, 4) != entryMark)
      return broken(fmt::format("its directory ends before entry {} of {}",
                                k + 1, count));
    const uint64_t nameBytes = field(record + 28, 2),
                   extraBytes = field(record + 30, 2),
                   whole = entryBytes + nameBytes + extraBytes +
                           field(record + 32, 2);
    if (whole > left)
      return broken("an entry of its directory is cut");
    std::string name(reinterpret_cast<const char *>(record + entryBytes),
                     nameBytes);
    auto wrong = [&](const char *what) {
      return broken(fmt::format("entry '{}' {}", escaped(name, 200), what));
    };
    Entry entry{field(record + 42, 4), field(record + 20, 4),
                field(record + 24, 4), uint32_t(field(record + 16, 4)),
                uint16_t(field(record + 10, 2))};
    if (!takeZip64(record + entryBytes + nameBytes, extraBytes,
                   {&entry.size, &entry.packed, &entry.header}))
      return wrong("has no valid sizes");
    if (field(record + 8, 2) & 1)
      return fail(ErrorKind::Unsupported,
                  fmt::format("'{}': entry '{}' is encrypted", path(),
                              escaped(name, 200)));
    if (entry.header > end || end - entry.header < localBytes ||
        entry.packed > end - entry.header - localBytes)
      return wrong("lies outside of the file (is it cut?)");
    if (entry.method == 0 && entry.packed != entry.size)
      return wrong("is stored, and says two sizes");
    if (entry.size / mostInflation > entry.packed)
      return wrong("says a size that no data inflates to");
    places.push_back(
        {entry.header, entry.header + localBytes + nameBytes + entry.packed});
    if (!all.emplace(std::move(name), entry).second)
      return broken("it names an entry twice");
    at += whole;
  }
  std::ranges::sort(places);
  for (size_t k = 1; k < places.size(); ++k)
    if (places[k].first < places[k - 1].second)
      return broken("two of its entries overlap");
  return {};
}

Result<HeldBytes> ZipFile::read(const std::string &name, uint64_t limit) const {
  auto found = all.find(name);
  if (found == all.end())
    return broken(fmt::format("it has no entry '{}'", escaped(name, 200)));
  const Entry &entry = found->second;
  auto wrong = [&](const std::string &what) {
    return broken(fmt::format("entry '{}' {}", escaped(name, 200), what));
  };
  if (entry.size > limit)
    return wrong(
        fmt::format("has {} bytes, and {} is the most", entry.size, limit));
  if (entry.method != 0 && entry.method != 8)
    return fail(ErrorKind::Unsupported,
                fmt::format("'{}': entry '{}' is packed by method {}; stored "
                            "and deflated ones are read",
                            path(), escaped(name, 200), entry.method));
  const std::vector<std::byte> local = copyOf(entry.header, localBytes);
  if (field(local.data(), 4) != localMark)
    return wrong("is not where the directory says");
  const uint64_t begin =
      entry.header + localBytes + field(&local[26], 2) + field(&local[28], 2);
  if (begin > file->bytes().size() ||
      entry.packed > file->bytes().size() - begin)
    return wrong("lies outside of the file (is it cut?)");
  HeldBytes data{file->bytes().subspan(begin, entry.packed), file};
  if (entry.method == 8) {
    const auto out = std::make_shared<std::vector<std::byte>>(entry.size);
    if (!inflateAll(data.bytes, *out))
      return wrong("is not what its sizes say when it is inflated");
    data = {*out, out};
  }
  if (crcOf(data.bytes) != entry.crc)
    return wrong("has another checksum than the directory says: the file is "
                 "damaged");
  return data;
}

} // namespace mgpu

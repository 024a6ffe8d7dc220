// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/FileIO.h"

#include <algorithm>
#include <climits>
#include <fmt/format.h>
#include <zlib.h>

namespace mgpu {

Result<std::string> gunzip(std::span<const std::byte> data, uint64_t limit,
                           const std::string &name) {
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 16) != Z_OK)
    return fail(ErrorKind::Internal, "zlib did not start");
  auto corrupt = [&](const char *what) {
    inflateEnd(&stream);
    return fail(ErrorKind::Invalid, fmt::format("'{}' {}", name, what));
  };
  std::string text;
  size_t given = 0;
  for (;;) {
    if (stream.avail_in == 0) {
      size_t count = std::min<size_t>(data.size() - given, UINT_MAX);
      // zlib's interface is not const-correct; it does not write here.
      stream.next_in = reinterpret_cast<Bytef *>(
          const_cast<std::byte *>(data.data() + given));
      stream.avail_in = static_cast<uInt>(count);
      given += count;
    }
    constexpr size_t chunk = size_t(256) << 10;
    size_t before = text.size();
    text.resize(before + chunk);
    stream.next_out = reinterpret_cast<Bytef *>(text.data() + before);
    stream.avail_out = chunk;
    int status = inflate(&stream, Z_NO_FLUSH);
    size_t produced = chunk - stream.avail_out;
    text.resize(before + produced);
    if (text.size() > limit)
      return corrupt("inflates to more than the limit");
    bool atEnd = stream.avail_in == 0 && given == data.size();
    if (status == Z_STREAM_END) {
      if (atEnd)
        break;
      if (inflateReset(&stream) != Z_OK)
        return corrupt("is not valid gzip data");
    } else if (status == Z_BUF_ERROR ||
               (status == Z_OK && atEnd && !produced)) {
      return corrupt("is truncated: the gzip data ends early");
    } else if (status != Z_OK) {
      return corrupt("is not valid gzip data");
    }
  }
  inflateEnd(&stream);
  return text;
}

Result<std::string> readText(const std::string &path, uint64_t limit) {
  MGPU_TRY_ASSIGN(std::vector<std::byte> data, readFile(path, limit));
  if (data.size() >= 2 && data[0] == std::byte{0x1f} &&
      data[1] == std::byte{0x8b})
    return gunzip(data, limit, path);
  return std::string(reinterpret_cast<const char *>(data.data()), data.size());
}

} // namespace mgpu

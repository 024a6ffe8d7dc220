// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-lsp-server/Messages.h"

#include <cerrno>
#include <cstdlib>
#include <unistd.h>

namespace mgpu::tools::lsp {

using nlohmann::json;

// A walk over a message calls itself for each level of it.
constexpr int deepest = 200;
// A text of that length was not meant, and would be waited for.
constexpr size_t longest = size_t(1) << 30;

bool Reader::fill() {
  char bytes[65536];
  ssize_t count;
  do
    count = ::read(fd, bytes, sizeof bytes);
  while (count < 0 && errno == EINTR);
  isAtEnd = count <= 0;
  if (!isAtEnd)
    pending.append(bytes, size_t(count));
  return !isAtEnd;
}

std::optional<std::string> Reader::nextText() {
  if (isDelimited) {
    const size_t end = pending.find("// -----");
    if (end == std::string::npos && (!isAtEnd || pending.empty()))
      return std::nullopt;
    std::string text = pending.substr(0, end);
    const size_t line = pending.find('\n', end);
    pending.erase(0, line == std::string::npos ? line : line + 1);
    // Comments are FileCheck's.
    std::string message;
    for (size_t at = 0; at < text.size();) {
      const size_t next = std::min(text.find('\n', at), text.size());
      if (text.compare(at, 2, "//") != 0)
        message += text.substr(at, next - at) + "\n";
      at = next + 1;
    }
    return message;
  }
  const size_t header = pending.find("\r\n\r\n");
  if (header == std::string::npos)
    return std::nullopt;
  const std::string_view name = "Content-Length:";
  const size_t at = pending.find(name);
  const size_t length =
      at < header
          ? std::strtoull(pending.c_str() + at + name.size(), nullptr, 10)
          : 0;
  if (length > longest) {
    pending.erase(0, header + 4);
    return std::string(); // which is no message
  }
  if (pending.size() - header - 4 < length)
    return std::nullopt;
  std::string text = pending.substr(header + 4, length);
  pending.erase(0, header + 4 + length);
  return text;
}

std::optional<json> Reader::next() {
  while (auto text = nextText()) {
    bool isDeep = false;
    auto look = [&](int depth, json::parse_event_t, json &) {
      isDeep |= depth > deepest;
      return !isDeep;
    };
    json message = json::parse(*text, look, /*allow_exceptions=*/false);
    if (message.is_object() && !isDeep)
      return message;
  }
  return std::nullopt;
}

bool writeMessage(int fd, const json &message, bool isPretty) {
  std::string text = message.dump(isPretty ? 2 : -1, ' ', false,
                                  json::error_handler_t::replace);
  text = "Content-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text;
  if (isPretty)
    text += "\r\n";
  for (size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(fd, text.data() + done, text.size() - done);
    if (count < 0 && errno != EINTR)
      return false;
    done += size_t(std::max<ssize_t>(count, 0));
  }
  return true;
}

} // namespace mgpu::tools::lsp

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/LineText.h"

#include <algorithm>
#include <cmath>

namespace mgpu {

std::string quoteText(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + '"';
}

std::string numberText(double value) {
  char buffer[64];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, end);
}

tl::unexpected<Error> LineReader::bad(std::string message) const {
  return fail(ErrorKind::Invalid,
              fmt::format("{} line {}: {}", what, lineNumber, message));
}

Result<void> LineReader::expectEnd() const {
  if (!atEnd())
    return bad(fmt::format("unexpected \"{}\" after the end of the line's "
                           "meaning",
                           rest.substr(0, 40)));
  return {};
}

std::string_view LineReader::word() {
  std::string_view text = peek();
  rest.remove_prefix(text.size());
  skipBlanks();
  return text;
}

Result<void> LineReader::keyword(std::string_view expected) {
  std::string_view got = word();
  if (got != expected)
    return bad(fmt::format("expected \"{}\", found \"{}\"", expected,
                           got.substr(0, 40)));
  return {};
}

Result<double> LineReader::number(std::string_view noun) {
  std::string_view text = word();
  double value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() ||
      end != text.data() + text.size() || !std::isfinite(value) ||
      std::signbit(value))
    return bad(
        fmt::format("\"{}\" is not a valid {}", text.substr(0, 40), noun));
  return value;
}

Result<std::string> LineReader::quoted() {
  if (rest.empty() || rest[0] != '"')
    return bad("expected a name in double quotes");
  std::string out;
  for (size_t i = 1; i < rest.size(); ++i) {
    char c = rest[i];
    if (c == '"') {
      rest.remove_prefix(i + 1);
      skipBlanks();
      return out;
    }
    if (c != '\\') {
      out += c;
      continue;
    }
    char next = i + 1 < rest.size() ? rest[i + 1] : '\0';
    if (next == '"' || next == '\\') {
      out += next;
      i += 1;
      continue;
    }
    unsigned code = 0;
    const char *digits = rest.data() + i + 2;
    if (next != 'x' || i + 4 > rest.size() ||
        std::from_chars(digits, digits + 2, code, 16).ptr != digits + 2)
      return bad("a backslash in a name must be followed by \", \\ or two "
                 "hexadecimal digits after x");
    out += char(code);
    i += 3;
  }
  return bad("a name lacks its closing quote");
}

size_t LineReader::wordLength() const {
  size_t end = 0; // find_first_of() is a call for each letter
  while (end < rest.size() && rest[end] != ' ' && rest[end] != '\t')
    ++end;
  return end;
}

void LineReader::skipBlanks() {
  while (!rest.empty() && (rest[0] == ' ' || rest[0] == '\t'))
    rest.remove_prefix(1);
}

LineReader LineSource::next() {
  while (!text.empty()) {
    ++lineNumber;
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.ends_with('\r'))
      line.remove_suffix(1);
    LineReader reader(what, line, lineNumber);
    if (!reader.atEnd() && reader.peek()[0] != '#')
      return reader;
  }
  return LineReader(what, {}, lineNumber + 1);
}

Result<void> LineSource::title(std::string_view keyword, uint32_t version,
                               std::string_view again) {
  LineReader line = next();
  MGPU_TRY(line.keyword(keyword));
  MGPU_TRY_ASSIGN(const uint32_t got, line.integer<uint32_t>("version number"));
  if (got == version)
    return line.expectEnd();
  Error error =
      line.bad(fmt::format("the {} has version {}, of {} mgpu; this "
                           "one reads version {}: make it anew by "
                           "`{}`",
                           what, got, got < version ? "an earlier" : "a later",
                           version, again))
          .value();
  error.kind = ErrorKind::Unsupported;
  return fail(std::move(error));
}

} // namespace mgpu
